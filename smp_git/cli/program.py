"""All commands of the program, in the order in which the help lists them."""

from __future__ import annotations

from smp_git.cli import ask, bisect, erase, hook, read, sessions, show_demo, write
from smp_git.cli.app import app

__all__ = ["app", "ask", "bisect", "erase", "hook", "read", "sessions", "show_demo", "write"]
