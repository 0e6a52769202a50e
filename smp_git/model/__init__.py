"""Memories and all that is true of them; no input and no output."""
