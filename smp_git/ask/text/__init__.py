"""Full-text search and similarity over the memories of a session."""
