"""All commands of the program, in the order in which the help lists them."""

from __future__ import annotations

from smp_git.cli import ask, bisect, branch, erase, hook, read, sessions, show_demo, sync, write
from smp_git.cli.app import app

__all__ = [
    "app",
    "ask",
    "bisect",
    "branch",
    "erase",
    "hook",
    "read",
    "sessions",
    "show_demo",
    "sync",
    "write",
]
