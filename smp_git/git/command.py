"""The git command: untouched by anybody's configuration, bounded in size and time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from binascii import unhexlify
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Final, NamedTuple

from smp_git.git import disk
from smp_git.model.errors import DamagedError, GitMissingError

_ISOLATED: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "pack.writeBitmapHashCache=false",
    "core.fsync=all",
    "pack.threads=1",
)


@cache
def program() -> str:
    """Return the path of the git command; raise GitMissingError if there is none."""
    found = shutil.which("git")
    if found is None:
        raise GitMissingError(
            "deletions, merges and remotes need the git command, which is not on the PATH",
            hint="install Git, or add its folder to the PATH",
        )
    return found


def arguments(git: Path, *rest: str) -> list[str]:
    """Return a command on a repository."""
    settings = [part for each in _ISOLATED for part in ("-c", each)]
    return [program(), f"--git-dir={git}", *settings, *rest]


def environment() -> dict[str, str]:
    """Return an environment in which nobody's settings reach the command."""
    return {
        "PATH": str(Path(program()).parent),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }


def pack_objects(git: Path, names: Iterable[bytes]) -> None:
    """Write a pack of these objects, which are packed already; differences are kept.

    What differed from an object that is not asked for gets another base: for one memory of
    10,000 commits that takes 0.1 s of processor time, for 100 of them 0.6 of 5.4 s.
    """
    base = git / "objects" / "pack" / "pack"
    rest = ("-q", "--compression=1", "--delta-base-offset", str(base))
    _ask(git, _lines(names), "pack-objects", *rest)
    disk.flush_folder(base.parent)


def reachable(git: Path, tips: Iterable[bytes]) -> set[bytes]:
    """Return everything that some commits and tags reach."""
    done = _ask(git, _lines(tips), "rev-list", "--objects", "--no-object-names", "--stdin")
    return set(map(unhexlify, done.split()))


def history(git: Path, tips: Iterable[str]) -> list[bytes]:
    """Return the commits that `tips` reach, parents first."""
    asked = "".join(f"{tip}\n" for tip in tips).encode()
    done = _ask(git, asked, "rev-list", "--topo-order", "--reverse", "--stdin")
    return list(map(unhexlify, done.split()))


class FileChange(NamedTuple):
    """One file that a commit has otherwise than one of its parents; None where it is not."""

    commit: str
    path: str
    old: str | None
    new: str | None


def file_changes(git: Path, tips: Iterable[str], paths: Iterable[str]) -> list[FileChange]:
    """Return how the commits that `tips` reach change some files, oldest first.

    A merge is compared with each of its parents.
    """
    asked = "".join([*(f"{tip}\n" for tip in tips), "--\n", *(f"{path}\n" for path in paths)])
    form = ("--raw", "--no-abbrev", "--no-renames", "--no-color", "--format=%x00%H")
    walk = ("--full-history", "--topo-order", "--reverse", "-m", "--root", "--stdin")
    done = _ask(git, asked.encode(), "log", *walk, *form)
    found: list[FileChange] = []
    commit = ""
    for line in done.decode("utf-8", "replace").splitlines():
        if line.startswith("\0"):
            commit = line[1:]
        elif line.startswith(":"):
            meta, _, path = line.partition("\t")
            _, _, old, new, _ = meta.split(" ")
            found.append(FileChange(commit, path, _name(old), _name(new)))
    return found


def messages(git: Path, tips: Iterable[str], beside: Iterable[str], start: str) -> bytes:
    """Return the messages with a line that begins so, of what `tips` reach and not those `beside`."""
    asked = "".join([*(f"{tip}\n" for tip in tips), *(f"^{tip}\n" for tip in beside)])
    return _ask(git, asked.encode(), "log", "--stdin", f"--grep=^{start}", "--format=%B")


def bundle(git: Path, refs: Iterable[str], place: Path) -> None:
    """Write references, with everything that they reach, into a bundle."""
    asked = "".join(f"{ref}\n" for ref in refs)
    _ask(git, asked.encode(), "bundle", "create", "--quiet", str(place), "--stdin")


def unbundle(git: Path, place: Path, refs: Iterable[str]) -> None:
    """Fetch what a bundle holds below some references into a bare repository."""
    _ask(git, b"", "fetch", "--quiet", "--no-tags", str(place), *(f"{ref}*:{ref}*" for ref in refs))


def _name(text: str) -> str | None:
    return text if text.strip("0") else None


def _lines(names: Iterable[bytes]) -> bytes:
    return b"".join(name.hex().encode() + b"\n" for name in names)


def _ask(git: Path, text: bytes, *rest: str) -> bytes:
    """Return what a command answers to a text; raise DamagedError if it fails."""
    done = subprocess.run(  # noqa: S603 - our own arguments
        arguments(git, *rest),
        input=text,
        env=environment(),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise DamagedError(
            f"git {rest[0]} failed in session {git.parent.name}: {said[-1] if said else done.returncode}",
            hint="smp check names what is affected",
        )
    return done.stdout


_CHUNK: Final = 65536
_KEPT: Final = 65536
# Git removes its temporary and lock files when it is asked to end.
_GRACE_SECONDS: Final = 2.0
# A helper that went into the background may keep the pipes open.
_LINGER_SECONDS: Final = 0.5
_TICK_SECONDS: Final = 0.25
_LULL_SECONDS: Final = 0.05
_SHELL: Final = "/bin/sh"
_BLOCK: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Leash:
    """The limits of a process; None is no limit.

    `memory_bytes` counts what it allocates, not the files that it maps.
    """

    silence_seconds: float
    total_seconds: float
    reply_bytes: int
    file_bytes: int | None = None
    memory_bytes: int | None = None
    cpu_seconds: int | None = None


class Done(NamedTuple):
    """The result of a process; `cut` is silent, late or long if it was stopped for that."""

    status: int
    reply: bytes
    complaint: str
    cut: str = ""


def run(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    leash: Leash,
    said: Callable[[str], None] | None = None,
    size: Callable[[], int] | None = None,
) -> Done:
    """Run a command to its end and return what it said.

    Each line of its standard error goes to `said`. `size` is what it has written so far:
    as long as that grows it is not silent, and no more than `file_bytes` may come.
    """
    process: subprocess.Popen[bytes] | None = None
    try:
        with _undisturbed():
            process = _started(arguments, environment, leash)
        listener = _Listener(process, leash, said, size or (lambda: 0))
        cut = listener.listen() or _waited(process, leash)
    finally:
        if process is not None:
            _end(process)
    return Done(process.returncode, bytes(listener.reply), listener.complaint(), cut)


def _started(
    arguments: Sequence[str], environment: Mapping[str, str], leash: Leash
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own arguments
        [*_limited(leash), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(environment),
        cwd=Path(os.sep),
        start_new_session=True,
    )


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Put an interrupt off to the end: between start and note a process would be nobody's."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    noted: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _frame: noted.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if noted:
        before(noted[0], None)


def _waited(process: subprocess.Popen[bytes], leash: Leash) -> str:
    """Wait for a process that has closed its outputs; return whether it has to be ended."""
    try:
        process.wait(leash.silence_seconds)
    except subprocess.TimeoutExpired:
        return "silent"
    return ""


def _limited(leash: Leash) -> list[str]:
    """Return a beginning of a command line that sets its limits before anything runs."""
    if os.name == "nt":
        return []
    limits = ["ulimit -S -c 0"]
    if leash.file_bytes is not None:
        limits.append(f"ulimit -S -f {leash.file_bytes // _BLOCK + 1}")
    if leash.memory_bytes is not None:
        limits.append(f"ulimit -S -d {leash.memory_bytes // 1024}")
    if leash.cpu_seconds is not None:
        limits.append(f"ulimit -S -t {leash.cpu_seconds}")
    return [_SHELL, "-c", "".join(f"{each} 2>/dev/null;" for each in limits) + 'exec "$@"', "git"]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process with all that it started."""
    if process.poll() is not None:
        return
    _signal(process, signal.SIGTERM)
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    finally:
        # Its children may have outlived it.
        _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
        process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        if os.name == "nt":
            process.send_signal(number)
        else:
            os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        pass


class _Listener:
    """Reads both outputs of a process until it ends or has to be ended."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        leash: Leash,
        said: Callable[[str], None] | None,
        size: Callable[[], int],
    ) -> None:
        self._process = process
        self._leash = leash
        self._said = said
        self._size = size
        self.reply = bytearray()
        self._lines: list[str] = []
        self._kept = 0
        self._rest = b""
        # Outputs that are not closed, when one of them last said anything, when the process ended.
        self._is_open = 2
        self._last = self._ended = 0.0
        self._heard: SimpleQueue[tuple[bool, bytes]] = SimpleQueue()
        self._replied = threading.Event()
        for is_reply, stream in ((True, process.stdout), (False, process.stderr)):
            if stream is not None:
                threading.Thread(target=self._read, args=(is_reply, stream), daemon=True).start()

    def _read(self, is_reply: bool, stream: IO[bytes]) -> None:  # noqa: FBT001 - as the queue has it
        with stream:
            while chunk := os.read(stream.fileno(), _CHUNK):
                self._heard.put((is_reply, chunk))
                if not is_reply:
                    # Progress comes in hundreds of lines, and who reads each keeps Git waiting.
                    self._replied.wait(_LULL_SECONDS)
        if is_reply:
            self._replied.set()
        self._heard.put((is_reply, b""))

    def listen(self) -> str:
        """Return why the process has to be ended, or an empty text when it ended."""
        started = self._last = looked = time.monotonic()
        size = self._size()
        while self._is_open:
            if not self._hear_some(_TICK_SECONDS):
                return ""
            now = time.monotonic()
            if now - looked >= _TICK_SECONDS:
                looked, grown = now, self._size()
                if grown != size:
                    self._last, size = now, grown
            if cut := self._cut(now - started, now - self._last, size):
                return cut
        return self._cut(0, 0, self._size())

    def _hear_some(self, seconds: float) -> bool:
        """Take what is said within a time; return whether more may come."""
        try:
            is_reply, chunk = self._heard.get(timeout=seconds)
        except Empty:
            if self._process.poll() is None:
                return True
            # What it said last may still be on its way.
            self._ended = self._ended or time.monotonic()
            return time.monotonic() - max(self._ended, self._last) <= _LINGER_SECONDS
        self._is_open -= not chunk
        self._last = time.monotonic()
        self._take(is_reply, chunk)
        return True

    def _cut(self, passed: float, silent: float, size: int) -> str:
        leash = self._leash
        if len(self.reply) > leash.reply_bytes or size > (leash.file_bytes or size):
            return "long"
        if passed > leash.total_seconds:
            return "late"
        return "silent" if silent > leash.silence_seconds else ""

    def _take(self, is_reply: bool, chunk: bytes) -> None:  # noqa: FBT001 - as the queue has it
        if is_reply:
            self.reply += chunk
            return
        *lines, self._rest = (self._rest + chunk).replace(b"\r\n", b"\n").splitlines(
            keepends=True
        ) or [b""]
        if not chunk or self._rest.endswith((b"\n", b"\r")):
            lines, self._rest = [*lines, self._rest], b""
        self._rest = self._rest[-_CHUNK:]
        for line in lines:
            self._hear(line)

    def _hear(self, line: bytes) -> None:
        if line.endswith(b"\r") and self._said is None:
            return
        text = _printable(line)
        if text and self._said is not None:
            self._said(text)
        # What ends in a carriage return is overwritten on a terminal: progress.
        if text and not line.endswith(b"\r"):
            self._lines.append(text)
            self._kept += len(text)
            while self._kept > _KEPT:
                self._kept -= len(self._lines.pop(0))

    def complaint(self) -> str:
        """Return what was written to the standard error, without progress."""
        return "\n".join(self._lines)


def _printable(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else " " for each in text).strip()
