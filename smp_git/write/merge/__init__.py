"""Two histories of a session brought together, by memory and by field."""
