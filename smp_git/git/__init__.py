"""Git, reduced to the verbs a session needs."""
