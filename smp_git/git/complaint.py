"""What Git's own words about a remote mean."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from smp_git.model.errors import (
    RemoteAuthError,
    RemoteNotFoundError,
    RemoteRefusedError,
    RemoteUnreachableError,
    StorageError,
    SyncError,
    UntrustedError,
)

_LONGEST: Final = 300


class _Meaning(NamedTuple):
    pattern: re.Pattern[str]
    error: type[SyncError] | type[StorageError]
    words: str
    hint: str | None = None


def _meaning(pattern: str, error: type[SyncError] | type[StorageError], words: str, hint: str | None = None) -> _Meaning:  # fmt: skip
    return _Meaning(re.compile(pattern, re.IGNORECASE | re.MULTILINE), error, words, hint)


_KEY: Final = "check the key (setting ssh_key, or the agent) and who may use the repository"
_LOGIN: Final = "set SMP_TOKEN, or let Git's credential helper answer"
_AGAIN: Final = "nothing here was changed; try again"
_NAME: Final = "check the address: smp remote list shows it"

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
    _meaning(r"could not resolve|name or service not known|nodename nor servname|temporary failure in name resolution", RemoteUnreachableError, "its host cannot be found", _NAME),
    _meaning(r"connection refused|failed to connect|couldn't connect|could not connect|network is unreachable|no route to host", RemoteUnreachableError, "it does not answer", "check the network, and the address"),
    _meaning(r"timed? ?out|too slow", RemoteUnreachableError, "it took too long", _AGAIN),
    _meaning(r"does not appear to be a git repository|repository .*not found|repository not found|not a git repository|no such file or directory|returned error: 404|project you were looking for|not valid: is this a git repository|cannot change to", RemoteNotFoundError, "there is no repository", _NAME),
    _meaning(r"signal 25|file size limit|file too large|exceeds maximum allowed size", UntrustedError, "it sends more than the limit", "raise sync_limit_bytes if that is right"),
    _meaning(r"out of memory|cannot allocate memory|signal 24|cpu time limit", UntrustedError, "what it sends takes more memory or time than a session can"),
    _meaning(r"^error: object \S+: |error in object|is a \w+, not a \w+|fsck error|not our ref|index-pack failed|unpack-objects (?:died|failed|error)|bad pack|corrupt|collision|missing (?:blob|tree|commit|necessary objects)|did not send all necessary|inflate|unresolved deltas|pack has|hash mismatch|refusing to (?:create|fetch)|funny ref|cannot lock ref|bad (?:object|tree|ref|revision)", UntrustedError, "what it sends is not sound"),
    _meaning(r"early eof|unexpected disconnect|hung up|connection (?:reset|closed|aborted)|broken pipe|rpc failed|unexpected eof|transfer closed|empty reply|recv failure|send failure|unexpected flush", RemoteUnreachableError, "the connection was cut", _AGAIN),
    _meaning(r"protocol|bad line|garbage|invalid|unexpected|unknown object format|mismatched algorithms|expected|not a (?:smart|pack)", UntrustedError, "what answers there does not speak Git"),
    _meaning(r"returned error: 5\d\d|internal server error", RemoteUnreachableError, "its server has a fault", _AGAIN),
    _meaning(r"permission denied|read-only file system|unable to create|insufficient permission|unable to write|unpack failed|does not support", RemoteRefusedError, "it does not take what is sent", "check who may write there"),
)  # fmt: skip
# What Git adds to each of the above, saying nothing itself.
_ADDED: Final = re.compile(
    r"^(?:fatal: could not read from remote repository|please make sure you have|and the repository exists|warning: permanently added)",
    re.IGNORECASE,
)
_SECRET: Final = re.compile(r"(://)[^/@\s]*:[^/@\s]*@")


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
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
