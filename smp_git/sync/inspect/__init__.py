"""Inspection of what a remote sent, before anything of it is used."""
