"""Exchanges with remotes, by the git command: what they hold, fetching, pushing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from smp_git.git import addresses, command, connections, references
from smp_git.git.addresses import Address, parse
from smp_git.git.command import Done, Leash
from smp_git.git.connections import Ssh
from smp_git.git.references import TRAVELLING
from smp_git.model.errors import (
    InvalidError,
    RemoteNotFoundError,
    RemoteUnreachableError,
    SmpError,
    UntrustedError,
    shown,
)

# What a child may know of its surroundings, unless Git's own helpers may be used.
_PASSED: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "SYSTEMROOT", "SSH_AUTH_SOCK",
    "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
)  # fmt: skip
_SETTINGS: Final = (
    "core.fsync=none",
    "credential.helper=",
    "http.followRedirects=false",
    "http.lowSpeedLimit=1",
    "submodule.recurse=false",
    # Large files stream through instead of being held, packs are mapped in small pieces.
    "core.bigFileThreshold=8m",
    "core.packedGitWindowSize=16m",
    "core.packedGitLimit=128m",
    "core.deltaBaseCacheLimit=64m",
)
_FETCHING: Final = (
    "fetch.fsckObjects=true",
    "fetch.unpackLimit=1",
    "fetch.writeCommitGraph=false",
    # What the session has is named in the quarantine; its references are not asked for again.
    "core.alternateRefsCommand=true",
    "pack.writeReverseIndex=false",
    "pack.threads=2",
)
_PUSHING: Final = ("push.gpgSign=false", "push.followTags=false", "push.negotiate=false")
_VARIABLE: Final = "SMP_TOKEN"
# Servers that want a name beside a token take this one.
_USER: Final = "x-access-token"
_ROW = re.compile(r"([0-9a-f]{40})\t([^\t\n]+)")
_OUTCOME = re.compile(r"([ +\-*!=])\t([^\t]*)\t(.*)")
_REASON = re.compile(r"\[([^]]*)\](?: \((.*)\))?")
_MOVED = re.compile(
    r"stale info|fetch first|needs force|already exists|remote ref updated|incorrect old value"
    r"|cannot lock ref|failed to (?:update|lock) ref|but expected"
)
_HELD = re.compile(r"atomic push fail")
_UNHEARD: Final = 10
# Git knows it without having it.
EMPTY_TREE: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_NO_REPOSITORY: Final = "smp remote add --create makes one at a path"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteAccess:
    """The way to a remote.

    Of `surroundings`, the environment, only what networks need is passed on; with `ask`
    Git's own configuration and credential helpers are used too. Nothing from the
    remote for `timeout_seconds` is taken for a cut connection.
    """

    surroundings: Mapping[str, str] = field(default_factory=dict, repr=False)
    ssh_key: Path | None = None
    ask: bool = False
    token: str | None = field(default=None, repr=False)
    timeout_seconds: float = 60.0
    total_seconds: float = 3600.0
    progress: Callable[[str], None] | None = None
    # Where ssh connections are kept open, if they are.
    connections: Path | None = None

    @property
    def ssh(self) -> Ssh:
        """The way in which ssh is called."""
        return Ssh(self.ssh_key, self.timeout_seconds, self.connections)


@contextmanager
def connected(access: RemoteAccess, places: Iterable[Address]) -> Iterator[RemoteAccess]:
    """Keep a connection open to each server that some places are on, where that can be."""
    passed = {name: access.surroundings[name] for name in _PASSED if name in access.surroundings}
    with connections.kept_open(access.ssh, places, passed) as ssh:
        yield replace(access, connections=ssh.folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of what a remote may send."""

    received_bytes: int = 512 << 20
    memory_bytes: int = 1 << 30
    cpu_seconds: int = 900
    reply_bytes: int = 16 << 20


class Update(NamedTuple):
    """A reference to move on a remote: to `new` (None: removed).

    With `force`, or when it is removed, only if it is at `expected` there (None: not
    there at all); else only forward.
    """

    ref: str
    new: str | None
    expected: str | None
    force: bool = False


class Fate(StrEnum):
    """A remote's answer to an update."""

    DONE = "done"
    CURRENT = "up to date"
    MOVED = "moved"
    REFUSED = "refused"
    HELD = "held"
    FAILED = "failed"


class Outcome(NamedTuple):
    """The result of an update, in the remote's own words if it gave any."""

    fate: Fate
    reason: str = ""


def advertised(
    address: str,
    access: RemoteAccess,
    limits: Limits = Limits(),
    prefixes: tuple[str, ...] = TRAVELLING,
) -> dict[str, str]:
    """Return the references of a remote that travel; empty for an empty repository."""
    place = _place(address)
    if place.kind == "path" and (found := _references_at(Path(place.path), prefixes)) is not None:
        return found
    git = Path(os.devnull)
    patterns = [f"{each}*" for each in prefixes]
    rest = ("ls-remote", "--refs", "--quiet", "--upload-pack=git-upload-pack", "--", place.text)
    # A list is short: a server that goes on and on is not waited for as long as a pack.
    soon = replace(access, total_seconds=min(access.total_seconds, 10 * access.timeout_seconds))
    done = _run(git, place, soon, _leash(soon, limits), (), (*rest, *patterns))
    if done.status or done.cut:
        raise _error(done, place, soon)
    return _rows(done.reply, place, prefixes)


def _references_at(place: Path, prefixes: tuple[str, ...]) -> dict[str, str] | None:
    """Return what the files of a repository at a path say; None if Git itself has to read them."""
    try:
        git = place / ".git" if (place / ".git").is_dir() else place
        if (
            not (git / "refs").is_dir()
            or not (git / "objects").is_dir()
            or (git / "reftable").exists()
        ):
            return None
        found = references.read(git)
    except (SmpError, OSError, ValueError):
        return None
    return {name: value for name, value in found.items() if name.startswith(prefixes)}


def _rows(reply: bytes, place: Address, prefixes: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for line in reply.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n"):
        if not line:
            continue
        row = _ROW.fullmatch(line)
        if row is None:
            raise UntrustedError(
                f"{place}: it lists {shown(line)}, which is not a reference",
                hint="a session is in a repository of the usual form, with SHA-1 ids",
            )
        if row[2].startswith(prefixes) and not row[2].endswith("^{}"):
            found[row[2]] = row[1]
    return found


def fetch(
    into: Path,
    address: str,
    refspecs: Sequence[str],
    access: RemoteAccess,
    limits: Limits = Limits(),
) -> None:
    """Fetch into the Git folder `into`, checking every object as it comes."""
    place = _place(address)
    # From far away progress is also what tells a slow server from one that is gone.
    is_heard = access.progress is not None or place.kind != "path"
    arguments = (
        "fetch",
        "--progress" if is_heard else "--quiet",
        "--atomic",
        "--no-tags",
        "--no-write-fetch-head",
        "--no-auto-maintenance",
        "--no-recurse-submodules",
        "--refmap=",
        "--upload-pack=git-upload-pack",
        "--",
        place.text,
    )
    if not is_heard:
        # Then nothing tells how long it counts, and it is given the time.
        access = replace(access, timeout_seconds=_UNHEARD * access.timeout_seconds)
    leash = _leash(access, limits, file_bytes=limits.received_bytes)
    size = partial(_size_of, into / "objects")
    done = _run(into, place, access, leash, _FETCHING, (*arguments, *refspecs), size)
    if done.status or done.cut:
        raise _error(done, place, access)


def _size_of(folder: Path) -> int:
    """Return how many bytes are in a folder; files may come and go meanwhile."""
    total = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    total += _size_of(Path(entry.path))
                else:
                    total += entry.stat(follow_symlinks=False).st_size
    except OSError:
        return total
    return total


def push(
    git: Path, address: str, updates: Sequence[Update], access: RemoteAccess
) -> dict[str, Outcome]:
    """Push updates, all or none where the remote can, and return what became of each.

    Raises a SyncError when the remote was not reached, or did not say what it did.
    """
    if not updates:
        return {}
    place = _place(address)
    arguments = [
        "push",
        "--porcelain",
        "--progress",
        "--no-verify",
        "--no-signed",
        "--no-follow-tags",
        "--recurse-submodules=no",
        "--receive-pack=git-receive-pack",
    ]
    if len(updates) > 1:
        arguments.append("--atomic")
    leases = [each for each in updates if each.force or each.new is None]
    arguments += [f"--force-with-lease={each.ref}:{each.expected or ''}" for each in leases]
    specs = [f"{each.new or ''}:{each.ref}" for each in updates]
    done = _run(
        git, place, access, _leash(access, None), _PUSHING, (*arguments, "--", place.text, *specs)
    )
    outcomes = _outcomes(done, access.token)
    lost = {each.ref for each in updates} - outcomes.keys()
    failed = [each for each in outcomes.values() if each.fate is Fate.FAILED]
    error = _error(done, place, access) if done.cut or lost or failed else None
    if error is not None and (lost or done.cut or isinstance(error, RemoteUnreachableError)):
        raise error
    return outcomes


def _outcomes(done: Done, secret: str | None) -> dict[str, Outcome]:
    found = {}
    for line in done.reply.decode("utf-8", "replace").splitlines():
        row = _OUTCOME.fullmatch(line)
        if row is not None:
            ref = row[2].rpartition(":")[2]
            found[ref] = _outcome(row[1], row[3], done.complaint, secret)
    return found


def _outcome(flag: str, summary: str, said: str, secret: str | None) -> Outcome:
    if flag != "!":
        return Outcome(Fate.CURRENT if flag == "=" else Fate.DONE)
    match = _REASON.match(summary)
    who, reason = (match[1], match[2] or match[1]) if match else ("", summary)
    told = [
        line.removeprefix("remote:").strip()
        for line in said.splitlines()
        if line.startswith("remote:")
    ]
    full = addresses.cleaned(": ".join([reason, *filter(None, [" ".join(told)])]), secret)
    if _HELD.search(reason):
        return Outcome(Fate.HELD, full)
    if _MOVED.search(reason) or (who == "rejected" and reason == "non-fast-forward"):
        return Outcome(Fate.MOVED, full)
    if reason == "atomic transaction failed" and _MOVED.search(said):
        return Outcome(Fate.MOVED, full)
    if who == "remote rejected" and not re.search(
        "unpacker error|atomic transaction|quarantine|missing necessary", reason
    ):
        return Outcome(Fate.REFUSED, full)
    return Outcome(Fate.FAILED, full)


# The command and what surrounds it


def _place(address: str) -> Address:
    place = parse(address, Path(os.sep))
    if place.kind == "path" and not Path(place.path).is_dir():
        raise RemoteNotFoundError(f"{place}: there is no repository", hint=_NO_REPOSITORY)
    return place


def _leash(access: RemoteAccess, limits: Limits | None, file_bytes: int | None = None) -> Leash:
    return Leash(
        silence_seconds=access.timeout_seconds,
        total_seconds=access.total_seconds,
        reply_bytes=(limits or Limits()).reply_bytes,
        file_bytes=file_bytes,
        memory_bytes=limits.memory_bytes if limits else None,
        cpu_seconds=limits.cpu_seconds if limits else None,
    )


def _run(
    git: Path,
    place: Address,
    access: RemoteAccess,
    leash: Leash,
    settings: Sequence[str],
    rest: Sequence[str],
    size: Callable[[], int] | None = None,
) -> Done:
    # The newer protocol asks once more, to be told fewer references: a question that costs
    # more than it saves where the session is on the same machine.
    protocol = 0 if place.kind == "path" else 2
    own = [
        *_SETTINGS,
        f"protocol.version={protocol}",
        f"http.lowSpeedTime={max(1, int(access.timeout_seconds))}",
        *settings,
    ]
    if access.ask and access.token is None:
        own.remove("credential.helper=")
    own += _token_settings(place, access)
    options = [part for each in own for part in ("-c", each)]
    arguments = command.arguments(git, *options, *rest)
    return command.run(arguments, _environment(place, access), leash, access.progress, size)


def _error(done: Done, place: Address, access: RemoteAccess) -> Exception:
    if done.cut == "long":
        return UntrustedError(
            f"{place}: it sends more than the limit", hint="raise sync_limit_bytes if that is right"
        )
    if done.cut:
        seconds = access.timeout_seconds if done.cut == "silent" else access.total_seconds
        return RemoteUnreachableError(
            f"{place}: nothing came for {seconds:g} seconds"
            if done.cut == "silent"
            else f"{place}: it took longer than {seconds:g} seconds",
            hint="try again, or raise sync_timeout_seconds",
        )
    return addresses.meant(done.complaint, str(place), access.token)


def _environment(place: Address, access: RemoteAccess) -> dict[str, str]:
    found = access.surroundings
    own = command.environment()
    if access.ask:
        kept = {
            name: value
            for name, value in found.items()
            if not name.startswith(("GIT_", "SMP_", "SSH_ASKPASS"))
        }
        own = {
            name: value
            for name, value in own.items()
            if name not in ("GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL")
        }
    else:
        kept = {name: found[name] for name in _PASSED if name in found}
    own |= kept | {
        "LC_ALL": "C",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS_REQUIRE": "never",
        "GIT_ALLOW_PROTOCOL": _protocols(place, access),
        "GIT_SSH_COMMAND": " ".join(map(quote, access.ssh.command(place))),
        "GIT_SSH_VARIANT": "ssh",
    }
    if access.token is not None and place.kind in ("http", "https"):
        own[_VARIABLE] = access.token
    return own


def _protocols(place: Address, access: RemoteAccess) -> str:
    """Return the protocols that Git may use: the one of the address, or what a person has for it."""
    if place.kind == "path":
        return "file"
    return f"{place.kind}:ssh:https" if access.ask else place.kind


def _token_settings(place: Address, access: RemoteAccess) -> list[str]:
    """Return settings that give the token to this host alone, from the environment."""
    if access.token is None or place.kind not in ("http", "https"):
        return []
    if not access.token.isprintable():
        raise InvalidError(f"{_VARIABLE} holds more than one line")
    parts = urlsplit(place.text)
    host = parts.netloc.rpartition("@")[2]
    name = "" if parts.username else f"echo username={_USER};"
    answer = f'printf "password=%s\\n" "${_VARIABLE}"'
    helper = f'!f() {{ test "$1" = get || exit 0; {name} {answer}; }}; f'
    return [f"credential.{place.kind}://{host}.helper={helper}"]
