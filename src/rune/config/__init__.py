"""What a person set, and which folders they trust."""
