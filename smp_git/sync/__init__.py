"""A session on several machines: what comes in, what goes out, what is known of remotes."""
