"""Secrets, found by a table of patterns, and their redaction."""

from smp_git.model.secrets.evidence import Pattern
from smp_git.model.secrets.patterns import PATTERNS
from smp_git.model.secrets.redaction import (
    Found,
    Redacted,
    RedactedValue,
    redact,
    redact_value,
)
from smp_git.model.secrets.rules import compile_user_pattern

__all__ = [
    "PATTERNS",
    "Found",
    "Pattern",
    "Redacted",
    "RedactedValue",
    "compile_user_pattern",
    "redact",
    "redact_value",
]
