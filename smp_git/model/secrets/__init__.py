"""Secrets, found by a table of patterns, and their redaction."""

from smp_git.model.secrets.evidence import SecretPattern
from smp_git.model.secrets.patterns import PATTERNS
from smp_git.model.secrets.redaction import (
    FoundSecrets,
    Redacted,
    RedactedValue,
    redact,
    redact_value,
)
from smp_git.model.secrets.rules import compile_user_pattern

__all__ = [
    "PATTERNS",
    "FoundSecrets",
    "Redacted",
    "RedactedValue",
    "SecretPattern",
    "compile_user_pattern",
    "redact",
    "redact_value",
]
