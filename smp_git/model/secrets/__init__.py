"""Secrets, found by a table of patterns, and their redaction."""

from typing import Final

SETTINGS: Final = (
    "redaction",
    "redaction_patterns",
    "redaction_allow",
    "redaction_replacement",
)
# What is put where a secret was, with the kind of secret for {kind}.
REPLACEMENT: Final = "[REDACTED:{kind}]"
