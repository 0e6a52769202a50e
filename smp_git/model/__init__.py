"""Memories and all that is true of them; no input and no output.

Entered by: checks, decay, errors, fields, given, ids, lifecycle, memory, names, regexes, relevance,
results, secrets.redaction, secrets.rules, settings, times, wording.
"""
