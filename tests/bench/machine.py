"""Where the figures were taken."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sqlite3
import subprocess
from pathlib import Path

import pygit2

_DISTRIBUTIONS = ("pygit2", "typer", "gitpython", "dulwich")


def line(folder: Path) -> str:
    """Return one line: cores, load, file system, versions."""
    load = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    parts = [
        f"{os.cpu_count()} cores ({_processor()})",
        load,
        f"{file_system(folder)} at {folder}",
        f"{platform.system()} {platform.release()}",
        f"Python {platform.python_version()}",
        subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.strip(),
        f"libgit2 {pygit2.LIBGIT2_VERSION}",
        f"SQLite {sqlite3.sqlite_version}",
        *(f"{name} {version}" for name in _DISTRIBUTIONS if (version := _version(name))),
    ]  # fmt: skip
    return "machine: " + ", ".join(part for part in parts if part)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line]
    return names[0] if names else platform.machine()


def file_system(folder: Path) -> str:
    """Return the type of the file system that holds a folder, as far as it can be told."""
    try:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return "unknown file system"
    fields = [mount.split(" ") for mount in mounts]
    place = str(folder.resolve())
    above = [f for f in fields if place == f[1] or place.startswith(f[1].rstrip("/") + "/")]
    return max(above, key=lambda f: len(f[1]))[2] if above else "unknown file system"
