"""One writer at a time, one commit a write."""
