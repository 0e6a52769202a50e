"""A session kept small: its quota, what compaction takes and what it keeps."""
