"""The catalogue on the disk between processes: a copy that saves time and is never needed."""

from __future__ import annotations

import hashlib
import marshal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from smp_git.ask.catalogue import FORM, Catalogue
from smp_git.format.lines import Entry
from smp_git.git.disk import replace_file

# Beside the search cache and like it erased with what is deleted.
SHELF: Final = "search-catalogue"

_FORM: Final = repr((FORM, Entry._fields, marshal.version, sys.version_info[:2])).encode()


def save(path: Path, catalogue: Catalogue, scratch: str) -> None:
    """Put a catalogue on the shelf; a disk that refuses is no matter."""
    body = marshal.dumps(catalogue.state())
    with suppress(OSError):
        replace_file(path, _sum(body) + body, scratch)


def load(path: Path) -> Catalogue | None:
    """Return the catalogue on the shelf, or None if it is missing, damaged or of another form.

    Each of its pages carries the id of the tree it was read from, so that whoever follows
    a snapshot reads anew what has changed.
    """
    try:
        data = path.read_bytes()
    except OSError:
        return None
    size = hashlib.sha256().digest_size
    body = data[size:]
    if data[:size] != _sum(body):
        return None
    # Only what carries our own checksum is unpacked.
    return Catalogue.restored(marshal.loads(body))  # noqa: S302


def _sum(body: bytes) -> bytes:
    return hashlib.sha256(_FORM + body).digest()
