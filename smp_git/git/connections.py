"""The ssh command, and ssh connections kept open for several exchanges with one server."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from smp_git.git.addresses import Address

# A connection that a dead process left open closes by itself.
_OPENING: Final = ("-M", "-N", "-f", "-o", "ControlPersist=60")
_CLOSING: Final = ("-O", "exit")
_AT_ONCE: Final = 8


class Ssh(NamedTuple):
    """The way in which ssh is called; connections that are kept open are in `folder`."""

    key: Path | None
    timeout_seconds: float
    folder: Path | None = None

    def command(self, place: Address) -> list[str]:
        """Return the words with which Git calls ssh for a place."""
        socket = self.socket(place)
        shared = ["-o", "ControlMaster=no", "-o", f"ControlPath={socket}"] if socket else []
        return [*self.words(), *shared]

    def words(self) -> list[str]:
        """Return the words that are the same for every place."""
        found = ["ssh", "-o", "BatchMode=yes"]
        found += ["-o", f"ConnectTimeout={max(1, int(self.timeout_seconds))}"]
        if self.key is not None:
            found += ["-i", str(self.key), "-o", "IdentitiesOnly=yes"]
        return found

    def socket(self, place: Address) -> Path | None:
        """Return where the connection to the server of a place is, if it is kept open."""
        if self.folder is None or place.kind != "ssh":
            return None
        # A socket may not have a long name.
        return self.folder / hashlib.sha256(server(place).encode()).hexdigest()[:8]


def server(place: Address) -> str:
    """Return the server of a place: of one that ssh reaches, as ssh is told it."""
    if "://" in place.text:
        parts = urlsplit(place.text)
        return f"{parts.scheme}://{parts.netloc}"
    # Of user@[::1]:path ssh takes no brackets.
    return re.sub(r"[][]", "", place.text.removesuffix(f":{place.path}"))


@contextmanager
def kept_open(ssh: Ssh, places: Iterable[Address], environment: Mapping[str, str]) -> Iterator[Ssh]:
    """Keep a connection open to each server that some places are on, for as long as this lasts.

    Where none can be kept open, on one side or the other, every exchange connects for
    itself, as it does without this.
    """
    servers = {server(place): place for place in places if place.kind == "ssh"}
    if not servers or os.name == "nt":
        yield ssh
        return
    with (
        tempfile.TemporaryDirectory(prefix="smp-") as folder,
        ThreadPoolExecutor(_AT_ONCE) as pool,
    ):
        way = ssh._replace(folder=Path(folder))

        def told(*more: str) -> None:
            list(pool.map(lambda place: _run(way, place, more, environment), servers.values()))

        told(*_OPENING)
        try:
            yield way
        finally:
            told(*_CLOSING)


def _run(ssh: Ssh, place: Address, more: Iterable[str], environment: Mapping[str, str]) -> None:
    words = [*ssh.words(), "-o", f"ControlPath={ssh.socket(place)}", *more, "--", server(place)]
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(  # noqa: S603 - our own arguments
            words,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            # What goes into the background would keep a pipe open.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=ssh.timeout_seconds,
            check=False,
            start_new_session=True,
        )
