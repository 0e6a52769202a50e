"""Secrets, found by a table of patterns, and their redaction."""
