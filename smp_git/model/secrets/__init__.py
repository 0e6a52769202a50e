"""How secrets are kept out of the store: found by a table of patterns, and replaced."""

from smp_git.model.secrets.custom import compile_user_pattern
from smp_git.model.secrets.evidence import Pattern
from smp_git.model.secrets.patterns import PATTERNS
from smp_git.model.secrets.redaction import (
    Found,
    Redacted,
    RedactedValue,
    redact,
    redact_value,
)

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
