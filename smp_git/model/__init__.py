"""Memories and all that is true of them; no input and no output.

Entered by: checks, decay, errors, ids, memory, regexes, relevance, secrets.redaction, secrets.rules,
settings, times.
"""
