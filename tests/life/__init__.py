"""The life of a session: states, archives, maintenance."""
