"""What a screen is made of: each draws values that it is given and tells what the person did."""
