"""What every model server speaks: where it is, bytes to lines and events, one door for foreign errors."""
