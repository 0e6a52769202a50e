"""What the hooks keep of one conversation beside the store: what it was told, how far it was read."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from smp_git.git.disk import remove_folder, replace_file

# Beside the sessions, never in one: it is of this machine alone, and holds no content.
FOLDER: Final = ".claude"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")
_OFFSET: Final = "read-to"
_FORKED: Final = "forked"
# So long Claude Code keeps transcripts, unless it is told otherwise.
_TOLD_SECONDS: Final = 30 * 86_400.0
# Longer, for whoever reads a transcript anew finds turns there that were compacted since.
_READ_SECONDS: Final = 400 * 86_400.0


class Conversation:
    """The marks of one conversation, each a file, so that two hooks at once cannot both set one."""

    def __init__(self, store: Path, name: str) -> None:
        self._all = store / FOLDER
        self._folder = self._all / (name if _NAME.fullmatch(name) else "unnamed")

    @property
    def is_new(self) -> bool:
        """Whether nothing was told to it yet."""
        return not any(self._marks().glob("*")) and not self.is_forked

    @property
    def is_forked(self) -> bool:
        """Whether it goes on from another conversation, and what that was told is not known yet."""
        return (self._folder / _FORKED).exists()

    @is_forked.setter
    def is_forked(self, is_it: bool) -> None:
        if is_it:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self._folder / _FORKED).touch()
        else:
            (self._folder / _FORKED).unlink(missing_ok=True)

    def _marks(self) -> Path:
        return self._folder / "told"

    def claims(self, mark: str) -> bool:
        """Set a mark; return False if it is set already."""
        folder = self._marks()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            (folder / re.sub(r"[^A-Za-z0-9_.-]", "_", mark)).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def forget(self) -> None:
        """Begin anew: what was told is no longer before the model."""
        remove_folder(self._marks())

    @property
    def read_to(self) -> int:
        """The byte up to which the transcript was recorded."""
        with suppress(OSError, ValueError):
            return int((self._folder / _OFFSET).read_text())
        return 0

    @read_to.setter
    def read_to(self, end: int) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Whole or not at all: of an empty one everything would be read anew.
        scratch = self._folder / f"{_OFFSET}.{os.getpid()}.tmp"
        replace_file(self._folder / _OFFSET, str(end).encode(), scratch)

    def prune(self) -> None:
        """Drop the marks of conversations that ended long ago."""
        now = time.time()
        for folder in self._all.iterdir() if self._all.is_dir() else ():
            if folder.is_dir():
                age = now - folder.stat().st_mtime
                if age > _TOLD_SECONDS:
                    remove_folder(folder / "told")
                if age > _READ_SECONDS:
                    remove_folder(folder)
