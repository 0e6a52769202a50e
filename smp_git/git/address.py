"""Where a remote is: an address that Git may be given, and how it is shown."""

from __future__ import annotations

import os
import re
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from smp_git.model.errors import InvalidError, shown

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::")
# As Git has it: a colon before the first slash makes a host, unless it is a drive.
_SCP = re.compile(r"(?:([^@/:]+)@)?(\[[0-9A-Fa-f:.%]+\]|[^@/:\[\]]+):(?!/?/?$)(.+)")
_PASSWORD = re.compile(r"[^/@:]*@[^/@:]+:")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._%+-]*")
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.%]*")
_HINT: Final = "a path, user@host:path, ssh://host/path or https://host/path"
_PASSWORDS: Final = "put it into SMP_TOKEN, or let Git's credential helper know it"
_LONGEST: Final = 2000


class Address(NamedTuple):
    """Where a remote is; `text` is what Git is given, and holds no password."""

    text: str
    kind: str
    host: str
    path: str

    def __str__(self) -> str:
        return self.text


def parse(text: str, base: Path) -> Address:
    """Return an address, a relative path being below `base`; raise InvalidError."""
    if not text or text.startswith("-") or len(text) > _LONGEST or not text.isprintable():
        raise InvalidError(f"{shown(_bare(text))} is no address of a remote", hint=_HINT)
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
        raise InvalidError(f"{shown(_bare(text))} is no address of a remote", hint=_HINT)
    if text.startswith("~"):
        raise InvalidError(f"{shown(text)}: ~ is the shell's word", hint="write the whole path")
    place = os.path.abspath(base / text)  # noqa: PTH100 - `..` goes, links stay
    if not place.isprintable():
        raise unfit(place)
    return Address(place, "path", "", place)


def unfit(place: Path | str) -> InvalidError:
    """Return the error for a path whose letters Git cannot be told."""
    return InvalidError(
        f"{shown(str(place))}: Git cannot be given a path with such letters",
        hint="rename the folder",
    )


def _url(text: str, scheme: str) -> Address:
    try:
        parts = urlsplit(text)
        host, _port = unquote(parts.hostname or ""), parts.port
    except ValueError:
        raise InvalidError(f"{shown(_bare(text))} is no address of a remote", hint=_HINT) from None
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
    return re.sub(r"(//|^)[^/@]*:[^/]*@", r"\1…:…@", text)
