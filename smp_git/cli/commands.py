"""All commands of the program, in the order in which the help lists them."""

from __future__ import annotations

from smp_git.cli import ask, demo, erase, history, sessions, sync, write
from smp_git.cli.app import program

app = program()

__all__ = [
    "app",
    "ask",
    "demo",
    "erase",
    "history",
    "sessions",
    "sync",
    "write",
]
