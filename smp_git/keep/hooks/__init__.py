"""Hooks between plain Git and a session: before a commit, after a move, before a push."""
