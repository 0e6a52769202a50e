"""Real damage in real repositories: what is still read, what is said of it, what is repaired."""
