"""The bytes of a session: ids and paths, memory files, index lines, messages."""
