"""Claude Code: hooks that load and record memory, and the files that install them."""
