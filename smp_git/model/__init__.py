"""What a memory is and what is true of it; no input and no output."""
