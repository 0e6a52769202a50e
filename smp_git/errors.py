"""The errors that the library raises, under the name that programs import them by."""

from __future__ import annotations

from smp_git.model import errors as _errors
from smp_git.model.errors import *  # noqa: F403 - every error is offered

__all__ = [
    name
    for name, value in vars(_errors).items()
    if isinstance(value, type) and issubclass(value, Exception)
]
