"""Addresses of remotes, the remotes of a repository, and what Git's complaints about them mean."""

from __future__ import annotations

import os
import re
import subprocess
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from smp_git.git import command, disk, libgit2
from smp_git.git.layout import unfit
from smp_git.model.errors import (
    AlreadyExistsError,
    FormatError,
    InvalidError,
    LockedError,
    NotFoundError,
    RemoteAuthError,
    RemoteNotFoundError,
    RemoteRefusedError,
    RemoteUnreachableError,
    StorageError,
    SyncError,
    UntrustedError,
    shown,
)

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::")
# As Git has it: a colon before the first slash makes a host, unless it is a drive.
_SCP = re.compile(r"(?:([^@/:]+)@)?(\[[0-9A-Fa-f:.%]+\]|[^@/:\[\]]+):(?!/?/?$)(.+)")
_PASSWORD = re.compile(r"[^/@:]*@[^/@:]+:")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._%+-]*")
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.%]*")
# What must not be shown of addresses: of one that may be none, inside of a text, and
# for good, where a user's name alone is of no use either.
_USER_AND_PASSWORD: Final = re.compile(r"(//|^)[^/@]*:[^/]*@")
_SECRET: Final = re.compile(r"(://)[^/@\s]*:[^/@\s]*@")
_LOGIN_PART: Final = re.compile(r"(?<=://)[^/@]+@")
_HINT: Final = "a path, user@host:path, ssh://host/path or https://host/path"
_PASSWORDS: Final = "put it into SMP_TOKEN, or let Git's credential helper know it"
_LONGEST: Final = 2000


class Address(NamedTuple):
    """The address of a remote; `text` is what Git is given, and holds no password."""

    text: str
    kind: str
    host: str
    path: str

    def __str__(self) -> str:
        return self.text


def parse(text: str, base: Path) -> Address:
    """Return an address, a relative path being below `base`; raise InvalidError."""
    if not text or text.startswith("-") or len(text) > _LONGEST or not text.isprintable():
        raise InvalidError(f"{shown(_bare(text))} is not a valid address for a remote", hint=_HINT)
    if _HELPER.match(text):
        raise InvalidError(f"{shown(_bare(text))}: no such programs are started", hint=_HINT)
    scheme = _SCHEME.match(text)
    if scheme:
        return _url(text, scheme[1].lower())
    scp = None if _DRIVE.match(text) else _SCP.fullmatch(text)
    if scp:
        user, host, path = scp[1] or "", scp[2].strip("[]"), scp[3]
        if not user and _PASSWORD.match(path):
            raise InvalidError(f"{shown(_bare(text))} has a password in it", hint=_PASSWORDS)
        _check_place(text, user, host, path)
        return Address(text, "ssh", host, path)
    if ":" in text.partition("/")[0] and not _DRIVE.match(text):
        raise InvalidError(f"{shown(_bare(text))} is not a valid address for a remote", hint=_HINT)
    if text.startswith("~"):
        raise InvalidError(f"{shown(text)}: ~ is the shell's word", hint="write the whole path")
    place = os.path.abspath(base / text)  # noqa: PTH100 - `..` goes, links stay
    if not place.isprintable():
        raise unfit(place)
    return Address(place, "path", "", place)


def _url(text: str, scheme: str) -> Address:
    try:
        parts = urlsplit(text)
        host, _port = unquote(parts.hostname or ""), parts.port
    except ValueError:
        raise InvalidError(
            f"{shown(_bare(text))} is not a valid address for a remote", hint=_HINT
        ) from None
    if parts.password is not None:
        raise InvalidError(f"{shown(_bare(text))} has a password in it", hint=_PASSWORDS)
    path = unquote(parts.path)
    if scheme == "file":
        if host not in ("", "localhost") or not path.startswith("/"):
            raise InvalidError(f"{shown(text)}: a file:// address begins with file:///")
        return Address(text, "path", "", path)
    if parts.query or parts.fragment:
        raise InvalidError(f"{shown(_bare(text))}: an address has no ? and no #", hint=_HINT)
    _check_place(text, unquote(parts.username or ""), host, path)
    if scheme == "http" and not _is_here(host):
        raise InvalidError(f"{shown(_bare(text))} is not encrypted", hint="use https://")
    if scheme not in ("ssh", "https", "http"):
        raise InvalidError(f"{shown(_bare(text))}: {scheme} is not used", hint=_HINT)
    return Address(scheme + text[len(scheme) :], scheme, host, path)


def _check_place(text: str, user: str, host: str, path: str) -> None:
    if (user and not _NAME.fullmatch(user)) or not _HOST.fullmatch(host):
        raise InvalidError(f"{shown(_bare(text))} has no host that can be asked", hint=_HINT)
    if not path.strip("/") or path.startswith("-") or not path.isprintable():
        raise InvalidError(f"{shown(_bare(text))} names no repository", hint=_HINT)


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def unusable(text: str) -> Address:
    """Return the address of a remote that a person configured and no exchange will take."""
    return Address(_bare(text), "", "", "")


def _bare(text: str) -> str:
    """Return a text that may be an address without what may be a password in it."""
    return _USER_AND_PASSWORD.sub(r"\1…:…@", text)


def without_login(text: str) -> str:
    """Return an address without the user and the password in it."""
    return _LOGIN_PART.sub("", text)


_BARE: Final = """\
[core]
	repositoryformatversion = 0
	filemode = true
	bare = true
	fsync = objects,reference
[gc]
	auto = 0
[receive]
	fsckObjects = true
	autogc = false
"""


def remotes(git: Path) -> dict[str, str]:
    """Return the address of each remote by its name, as it is in the configuration."""
    try:
        config = libgit2.Config(str(git / "config"))
        rows = [(entry.name, str(entry.value)) for entry in config]
    except (libgit2.GitError, UnicodeDecodeError) as error:
        raise FormatError(f"{git / 'config'} cannot be read: {error}") from error
    found: dict[str, str] = {}
    for name, value in rows:
        if name.startswith("remote.") and name.endswith(".url"):
            found.setdefault(name[len("remote.") : -len(".url")], value)
    return found


def add(git: Path, name: str, address: str) -> None:
    """Add a remote whose branches are tracked as usual."""
    if name in remotes(git):
        raise AlreadyExistsError(
            f"a remote named {name} already exists", hint="remove it first, or choose another name"
        )
    _run(git, "remote", "add", "--", name, address)


def remove(git: Path, name: str) -> None:
    """Forget a remote, with the references that track it."""
    _check_there(git, name)
    _run(git, "remote", "remove", "--", name)


def rename(git: Path, old: str, new: str) -> None:
    """Give a remote another name, and the references that track it."""
    _check_there(git, old)
    if new in remotes(git):
        raise AlreadyExistsError(f"a remote named {new} already exists", hint="choose another name")
    _run(git, "remote", "rename", "--", old, new)


def _check_there(git: Path, name: str) -> None:
    found = remotes(git)
    if name not in found:
        raise NotFoundError(
            f"no remote {shown(name)}", hint=f"remotes are {', '.join(sorted(found)) or 'none yet'}"
        )


def _run(git: Path, *rest: str) -> None:
    done = subprocess.run(  # noqa: S603 - our own arguments
        command.arguments(git, *rest),
        env=command.environment(),
        capture_output=True,
        check=False,
        text=True,
        errors="replace",
    )
    if done.returncode == 0:
        return
    said = (done.stderr.strip().splitlines() or [""])[-1]
    if "could not lock" in done.stderr:
        raise LockedError(
            f"another Git process holds {git / 'config.lock'}",
            hint="wait for it to end; if none runs, remove that file",
        )
    raise StorageError(f"{git / 'config'} was not changed: {said}")


_BARE_FOLDERS: Final = (
    "objects/info",
    "objects/pack",
    "refs/heads",
    "refs/tags",
    "info",
    "hooks",
)
# What is in a repository that is being made, and in no other.
_BEGUN: Final = re.compile(r"objects|refs|info|hooks|config|HEAD\.\d+")


def create_bare(place: Path) -> None:
    """Make an empty repository that sessions are pushed to; leave one that is there.

    One that somebody began to make is completed, whether he died or is at it.
    """
    with disk.reporting(f"a repository at {place}"):
        if (place / "HEAD").is_file() and (place / "objects").is_dir():
            return
        if place.exists() and not _is_begun(place):
            raise AlreadyExistsError(
                f"{place} holds other files", hint="name an empty or a new folder"
            )
        for folder in _BARE_FOLDERS:
            disk.make_folders(place / folder)
        (place / "config").write_text(_BARE)
        # Makes it a repository, so it comes last.
        disk.replace_durably(
            place / "HEAD", b"ref: refs/heads/main\n", place / f"HEAD.{os.getpid()}"
        )


def _is_begun(place: Path) -> bool:
    return place.is_dir() and all(_BEGUN.fullmatch(each.name) for each in place.iterdir())


_LONGEST_COMPLAINT: Final = 300


class _Meaning(NamedTuple):
    pattern: re.Pattern[str]
    error: type[SyncError] | type[StorageError]
    words: str
    hint: str | None = None


def _meaning(
    pattern: str, error: type[SyncError] | type[StorageError], words: str, hint: str | None = None
) -> _Meaning:
    return _Meaning(re.compile(pattern, re.IGNORECASE | re.MULTILINE), error, words, hint)


_KEY: Final = "check the key (setting ssh_key, or the agent) and who may use the repository"
_LOGIN: Final = "set SMP_TOKEN, or let Git's credential helper answer"
_AGAIN: Final = "nothing here was changed; try again"
_FSCK: Final = "nothing of it was taken; git fsck in the remote says what is damaged there"
_CHECK_ADDRESS: Final = "check the address: smp remote list shows it"

# The first that fits counts, so the more particular ones come first.
_MEANINGS: Final = (
    _meaning(r"^remote: .*(?:no space left|disk quota|disk full)|remote unpack failed: .*(?:no space left|disk quota)", RemoteRefusedError, "its disk is full", "free some space there; nothing here was changed"),
    _meaning(r"no space left on device|disk quota exceeded", StorageError, "the disk is full", "free some space; nothing was changed"),
    _meaning(r"host key verification failed|remote host identification has changed|no matching host key", RemoteAuthError, "its host key is not a known one", "connect once with ssh by hand and compare the key"),
    _meaning(r"permission denied \(|too many authentication failures|^(?:\S+@)?\S+: permission denied|load key|unprotected private key|no supported authentication", RemoteAuthError, "the key is not accepted", _KEY),
    _meaning(r"authentication failed|could not read (?:username|password)|terminal prompts disabled|returned error: 40[13]|invalid (?:credentials|username)|access denied", RemoteAuthError, "user or password is not accepted", _LOGIN),
    _meaning(r"certificate|ssl |tls |gnutls", RemoteAuthError, "its certificate is not trusted", "check the name in the address, and SSL_CERT_FILE"),
    _meaning(r"dubious ownership", RemoteAuthError, "the repository belongs to another user", "change its owner, or use ssh"),
    _meaning(r"returned error: 30\d|redirect", RemoteRefusedError, "it points to another address", "ask for the new address; it is not followed by itself"),
    _meaning(r"could not resolve|name or service not known|nodename nor servname|temporary failure in name resolution", RemoteUnreachableError, "its host cannot be found", _CHECK_ADDRESS),
    _meaning(r"connection refused|failed to connect|couldn't connect|could not connect|network is unreachable|no route to host", RemoteUnreachableError, "it does not answer", "check the network, and the address"),
    _meaning(r"timed? ?out|too slow", RemoteUnreachableError, "it took too long", _AGAIN),
    _meaning(r"does not appear to be a git repository|repository .*not found|repository not found|not a git repository|no such file or directory|returned error: 404|project you were looking for|cannot find repository|push to create is not enabled|not valid: is this a git repository|cannot change to", RemoteNotFoundError, "there is no repository", _CHECK_ADDRESS),
    _meaning(r"signal 25|file size limit|file too large|exceeds maximum allowed size", UntrustedError, "it sends more than the limit", "raise sync_limit_bytes if that is right"),
    _meaning(r"out of memory|cannot allocate memory|signal 24|cpu time limit", UntrustedError, "what it sends takes more memory or time than a session can", _FSCK),
    _meaning(r"^error: object \S+: |error in object|is a \w+, not a \w+|fsck error|not our ref|index-pack failed|unpack-objects (?:died|failed|error)|bad pack|corrupt|collision|missing (?:blob|tree|commit|necessary objects)|did not send all necessary|inflate|unresolved deltas|pack has|hash mismatch|refusing to (?:create|fetch)|funny ref|cannot lock ref|bad (?:object|tree|ref|revision)", UntrustedError, "what it sends is not sound", _FSCK),
    _meaning(r"early eof|unexpected disconnect|hung up|connection (?:reset|closed|aborted)|broken pipe|rpc failed|unexpected eof|transfer closed|empty reply|recv failure|send failure|unexpected flush", RemoteUnreachableError, "the connection was cut", _AGAIN),
    _meaning(r"protocol|bad line|garbage|invalid|unexpected|unknown object format|mismatched algorithms|expected|not a (?:smart|pack)", UntrustedError, "what answers there does not speak Git", _CHECK_ADDRESS),
    _meaning(r"returned error: 5\d\d|internal server error", RemoteUnreachableError, "its server has a fault", _AGAIN),
    _meaning(r"permission denied|read-only file system|unable to create|insufficient permission|unable to write|unpack failed|does not support", RemoteRefusedError, "it does not take what is sent", "check who may write there"),
)  # fmt: skip
# What Git adds to each of the above, saying nothing itself.
_ADDED: Final = re.compile(
    r"^(?:fatal: could not read from remote repository|please make sure you have|and the repository exists|warning: permanently added)",
    re.IGNORECASE,
)


def meant(complaint: str, remote: str, secret: str | None = None) -> SyncError | StorageError:
    """Return the error that Git's complaint about `remote` amounts to."""
    lines = [line for line in complaint.splitlines() if line and not _ADDED.match(line)]
    said = "\n".join(lines)
    for each in _MEANINGS:
        found = each.pattern.search(said)
        if found is not None:
            line = said[said.rfind("\n", 0, found.start()) + 1 :].partition("\n")[0]
            return each.error(f"{remote}: {each.words} ({cleaned(line, secret)})", hint=each.hint)
    if not lines:
        return RemoteUnreachableError(f"{remote}: the connection was cut", hint=_AGAIN)
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "remote:", "ERROR"))]
    last = cleaned((telling or lines)[-1], secret)
    return SyncError(f"{remote}: {last}", hint="git itself says this")


def cleaned(text: str, secret: str | None = None) -> str:
    """Return a text of Git or a server without secrets, cut short."""
    if secret:
        text = text.replace(secret, "…")
    text = _SECRET.sub(r"\1…@", text)
    return text if len(text) <= _LONGEST_COMPLAINT else text[: _LONGEST_COMPLAINT - 1] + "…"
