"""Archives of other programs, unpacked into a scratch folder within limits."""

from __future__ import annotations

import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

_MOST_BYTES: Final = 256 * 1024 * 1024
_MOST_FILES: Final = 20_000


@contextmanager
def unpacked(archive: Path) -> Iterator[Path]:
    """Unpack the plain files of a tar for as long as the block lasts; raise ValueError beyond the limits."""
    with tempfile.TemporaryDirectory(prefix="smp-import-") as name:
        folder, total = Path(name), 0
        with tarfile.open(archive, "r:*") as tar:
            for number, member in enumerate(tar):
                total += member.size
                if number >= _MOST_FILES or total > _MOST_BYTES:
                    raise ValueError(f"it unfolds to more than {_MOST_BYTES:,} bytes")
                if member.isreg() and _is_inside(member.name):
                    _write(tar, member, folder)
        yield folder


@contextmanager
def opened_archive(
    archive: Path, is_session: Callable[[Path], bool]
) -> Iterator[tuple[Path | None, str]]:
    """Unpack an archived session for as long as the block lasts; yield its folder, or why there is none."""
    with ExitStack() as stack:
        try:
            inner = stack.enter_context(unpacked(archive))
        except (tarfile.TarError, OSError, EOFError, ValueError, zlib.error) as error:
            found: tuple[Path | None, str] = None, f"the archive cannot be read: {error}"
        else:
            folders = [each for each in (inner, *sorted(inner.glob("*"))) if is_session(each)]
            found = folders[0] if folders else None, "the archive holds no session"
        yield found


def _is_inside(name: str) -> bool:
    place = PurePosixPath(name)
    return not place.is_absolute() and ".." not in place.parts and ".git" not in place.parts


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    target = folder / member.name
    target.parent.mkdir(parents=True, exist_ok=True)
    found = tar.extractfile(member)
    if found is not None:
        with found, target.open("wb") as out:
            while data := found.read(1 << 20):
                out.write(data)
