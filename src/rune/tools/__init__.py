"""What the model may do, one call at a time: places, files, edits, commands. It knows no model and no turn."""
