"""Sealed copies: versions of memories as one encrypted file; the owner of `cryptography`."""

from __future__ import annotations

import io
import json
import secrets
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from smp_git.model.errors import DamagedError, RefusedError
from smp_git.model.lives import of_generation
from smp_git.model.memory import MemoryId
from smp_git.model.times import format_time, parse_time

ALGORITHM: Final = "chacha20-poly1305"
# The first form did not bind the deadline.
_FIRST: Final = b"SMP-GIT SEALED 1\n"
_MAGIC: Final = b"SMP-GIT SEALED 2\n"
_NONCE_BYTES: Final = 12
_LIST: Final = "versions.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One version of a memory's file in a copy; `current` if it stood at the session's head."""

    id: MemoryId
    life: str | None
    at: datetime
    agent: str
    commit: str
    current: bool
    data: bytes


def packed(versions: Iterable[Kept]) -> bytes:
    """Return versions as a compressed archive, in their order."""
    kept = list(versions)
    rows = [_row(version) for version in kept]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=6) as archive:
        _put(archive, _LIST, json.dumps(rows).encode())
        for number, version in enumerate(kept):
            _put(archive, f"{number:06d}", version.data)
    return out.getvalue()


def unpacked(data: bytes) -> list[Kept]:
    """Return the versions of an archive."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            rows = json.loads(_get(archive, _LIST))
            return [_kept(row, _get(archive, f"{number:06d}")) for number, row in enumerate(rows)]
    except (tarfile.TarError, KeyError, ValueError, EOFError, OSError) as error:
        raise DamagedError(f"a copy for recovery cannot be read: {error}") from None


class Bound(NamedTuple):
    """What a copy is bound to: it opens only as the copy of this deletion, until this deadline."""

    deletion: str
    uid: str
    deadline: datetime

    def data(self, magic: bytes) -> bytes:
        """Return the associated data of the encryption."""
        said = [b"smp-git sealed copy", self.deletion.encode(), self.uid.encode()]
        if magic == _MAGIC:
            said.append(format_time(self.deadline).encode())
        return b"\0".join(said)


def sealed(data: bytes, key: bytes, bound: Bound) -> bytes:
    """Return `data` encrypted, bound to its deletion, its session and its deadline."""
    from cryptography.hazmat.primitives.ciphers.aead import (  # noqa: PLC0415 - only deletions need it
        ChaCha20Poly1305,
    )

    nonce = secrets.token_bytes(_NONCE_BYTES)
    return _MAGIC + nonce + ChaCha20Poly1305(key).encrypt(nonce, data, bound.data(_MAGIC))


def opened(data: bytes, key: bytes, bound: Bound) -> bytes:
    """Return what was sealed; raise DamagedError if the key, copy or deadline is not the right one."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305  # noqa: PLC0415

    magic = next((each for each in (_MAGIC, _FIRST) if data.startswith(each)), None)
    if magic is None:
        raise DamagedError(f"the sealed copy of {bound.deletion} is damaged")
    start = len(magic) + _NONCE_BYTES
    try:
        return ChaCha20Poly1305(key).decrypt(
            data[len(magic) : start], data[start:], bound.data(magic)
        )
    except (InvalidTag, ValueError):
        raise DamagedError(
            f"the sealed copy of {bound.deletion} does not open: its key is another, or it or the deadline in its record was changed",
            hint="bring back the key, the copy and the record as they were when the memory was deleted",
        ) from None


def check_available() -> None:
    """Raise RefusedError if this installation cannot encrypt."""
    try:
        import cryptography  # noqa: F401, PLC0415 - asked before anything is done
    except ImportError:
        raise RefusedError(
            "the package cryptography is missing, so no recoverable copy can be made",
            hint="install it: pip install cryptography",
        ) from None


def _row(version: Kept) -> dict[str, object]:
    return {
        "id": version.id,
        "life": version.life,
        "at": format_time(version.at),
        "agent": version.agent,
        "commit": version.commit,
        "current": version.current,
    }


def _kept(row: dict[str, object], data: bytes) -> Kept:
    at = str(row["at"])
    return Kept(
        id=MemoryId(str(row["id"])),
        life=_life(row),
        at=parse_time(at, datetime.fromisoformat(at)),
        agent=str(row["agent"]),
        commit=str(row["commit"]),
        current=bool(row["current"]),
        data=data,
    )


def _life(row: dict[str, object]) -> str | None:
    """Return the life of a version; format 1 numbered it."""
    if "life" not in row:
        return of_generation(int(str(row["generation"])))
    return str(row["life"]) if row["life"] is not None else None


def _put(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.mode = 0o600
    archive.addfile(entry, io.BytesIO(data))


def _get(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    if file is None:
        raise KeyError(name)
    return file.read()
