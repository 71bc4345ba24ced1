"""The terminal app: the only package that knows Textual."""

import os

# How long a key may wait for its picture, not how often pictures are made: what streams is flushed 30 times a second.
# At Textual's 60 a key waits up to 17 ms for the next one. Read when Textual is imported.
os.environ.setdefault("TEXTUAL_FPS", "125")
# It names a class to import: whoever sets an environment for another program must not choose what runs here.
os.environ.pop("TEXTUAL_DRIVER", None)
