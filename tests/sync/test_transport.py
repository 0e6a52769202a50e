"""Exchanges with remotes by path and over loopback: outcomes, errors, limits, secrets."""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from smp_git.git import addresses, command
from smp_git.git.command import Leash
from smp_git.git.transport import Fate, Limits, RemoteAccess, Update, advertised, fetch, push
from smp_git.model.errors import (
    InvalidError,
    RemoteAuthError,
    RemoteNotFoundError,
    RemoteRefusedError,
    RemoteUnreachableError,
    SyncError,
    UntrustedError,
)
from tests.support import ROOT, git, git_input
from tests.sync.support import hook, plain_files

ACCESS = RemoteAccess(surroundings=os.environ)
MAIN = "refs/heads/main"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A repository with two commits."""
    place = tmp_path / "here"
    place.mkdir()
    git(place, "init", "-q", "-b", "main")
    for text in ("one", "two"):
        (place / "file").write_text(text)
        git(place, "add", "file")
        git(place, "commit", "-q", "-m", text)
    return place


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """An empty repository to push to."""
    place = tmp_path / "there.git"
    addresses.create_bare(place)
    return place


def _id(place: Path, name: str = "main") -> str:
    return git(place, "rev-parse", name).strip()


def _pushed(
    here: Path, there: Path, *updates: Update, access: RemoteAccess = ACCESS
) -> dict[str, Fate]:
    found = push(here / ".git", str(there), updates, access)
    return {ref: outcome.fate for ref, outcome in found.items()}


# What a remote holds


def test_empty_repository_holds_nothing(there: Path) -> None:
    assert advertised(str(there), ACCESS) == {}


def test_only_what_travels_is_named(here: Path, there: Path) -> None:
    git(here, "tag", "-a", "v1", "-m", "v1")
    names = ("refs/heads/main", "refs/heads/a/b", "refs/tags/v1", "refs/smp/access/abcd")
    ids = {name: _id(here, "v1" if "tags" in name else "main") for name in names}
    for name in (*names, "refs/notes/x", "refs/smp/rescue/x", "refs/x/refs/heads/y"):
        git(here, "push", "-q", str(there), f"{ids.get(name, _id(here))}:{name}")

    assert advertised(f"file://{there}", ACCESS) == ids


def test_fetch_brings_what_is_asked(here: Path, there: Path) -> None:
    fetch(there, str(here), ["+refs/heads/*:refs/theirs/*"], ACCESS)

    assert _id(there, "refs/theirs/main") == _id(here)
    assert git(there, "fsck").strip() == ""
    assert not (there / "FETCH_HEAD").exists()


def test_progress_is_told(here: Path, there: Path) -> None:
    told: list[str] = []

    fetch(there, str(here), ["+refs/heads/*:refs/theirs/*"], RemoteAccess(progress=told.append))

    assert any("objects" in line for line in told)


# Outcomes of a push


def test_push_moves_forward_only(here: Path, there: Path) -> None:
    old, new = _id(here, "main~1"), _id(here)

    assert _pushed(here, there, Update(MAIN, new, None)) == {MAIN: Fate.DONE}
    assert _pushed(here, there, Update(MAIN, new, new)) == {MAIN: Fate.CURRENT}
    assert _pushed(here, there, Update(MAIN, old, new)) == {MAIN: Fate.MOVED}
    assert advertised(str(there), ACCESS) == {MAIN: new}


def test_forced_push_replaces_only_what_was_seen(here: Path, there: Path) -> None:
    old, new = _id(here, "main~1"), _id(here)
    _pushed(here, there, Update(MAIN, new, None))

    assert _pushed(here, there, Update(MAIN, old, old, force=True)) == {MAIN: Fate.MOVED}
    assert _pushed(here, there, Update(MAIN, old, None, force=True)) == {MAIN: Fate.MOVED}
    assert _pushed(here, there, Update(MAIN, old, new, force=True)) == {MAIN: Fate.DONE}
    assert advertised(str(there), ACCESS) == {MAIN: old}


def test_removal_takes_only_what_was_seen(here: Path, there: Path) -> None:
    old, new, other = _id(here, "main~1"), _id(here), "refs/heads/other"
    _pushed(here, there, Update(MAIN, new, None), Update(other, new, None))

    assert _pushed(here, there, Update(other, None, old)) == {other: Fate.MOVED}
    assert _pushed(here, there, Update(other, None, new)) == {other: Fate.DONE}
    assert advertised(str(there), ACCESS) == {MAIN: new}


def test_all_updates_or_none(here: Path, there: Path) -> None:
    old, new, other = _id(here, "main~1"), _id(here), "refs/heads/other"
    _pushed(here, there, Update(MAIN, new, None))

    found = _pushed(here, there, Update(MAIN, old, old, force=True), Update(other, new, None))

    assert found == {MAIN: Fate.MOVED, other: Fate.HELD}
    assert advertised(str(there), ACCESS) == {MAIN: new}


def test_tag_that_is_there_is_not_replaced(here: Path, there: Path) -> None:
    old, new, tag = _id(here, "main~1"), _id(here), "refs/tags/v1"
    _pushed(here, there, Update(tag, old, None))

    assert _pushed(here, there, Update(tag, new, None)) == {tag: Fate.MOVED}


def test_unrelated_history_is_not_overwritten(here: Path, there: Path, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    git(stranger, "init", "-q", "-b", "main")
    git(stranger, "commit", "-q", "--allow-empty", "-m", "stranger")
    _pushed(stranger, there, Update(MAIN, _id(stranger), None))

    assert _pushed(here, there, Update(MAIN, _id(here), None)) == {MAIN: Fate.MOVED}
    assert advertised(str(there), ACCESS) == {MAIN: _id(stranger)}


@pytest.mark.parametrize("name", ["pre-receive", "update"])
def test_hook_that_refuses_says_why(name: str, here: Path, there: Path) -> None:
    hook(there, name, "echo 'no memories on mondays' >&2; exit 1")

    (outcome,) = push(here / ".git", str(there), [Update(MAIN, _id(here), None)], ACCESS).values()

    assert outcome.fate == Fate.REFUSED
    assert "no memories on mondays" in outcome.reason


@pytest.mark.parametrize(
    ("setting", "update"),
    [
        ("receive.denyNonFastForwards", lambda old, new: Update(MAIN, old, new, force=True)),
        ("receive.denyDeletes", lambda _old, new: Update("refs/heads/other", None, new)),
    ],
    ids=["non-fast-forward", "delete"],
)
def test_setting_that_refuses_is_told_from_a_race(setting: str, update: Callable[[str, str], Update], here: Path, there: Path) -> None:  # fmt: skip
    old, new = _id(here, "main~1"), _id(here)
    _pushed(here, there, Update(MAIN, new, None), Update("refs/heads/other", new, None))
    git(there, "config", setting, "true")

    assert list(_pushed(here, there, update(old, new)).values()) == [Fate.REFUSED]


def test_remote_that_moves_between_looking_and_pushing_keeps_what_came(here: Path, there: Path) -> None:  # fmt: skip
    """The remote moves while the push is on its way, after it has said where it stands."""
    old, new = _id(here, "main~1"), _id(here)
    _pushed(here, there, Update(MAIN, new, None))
    other = git_input(here, b"", "commit-tree", f"{new}^{{tree}}", "-p", new, "-m", "other")
    git(here, "push", "-q", str(there), f"{other}:refs/heads/aside")
    hook(there, "update", f"git update-ref {MAIN} {other}")

    found = _pushed(here, there, Update(MAIN, old, new, force=True))

    assert found == {MAIN: Fate.MOVED}
    assert advertised(str(there), ACCESS)[MAIN] == other


def test_pushes_at_once_lose_nothing(here: Path, there: Path) -> None:
    base = _id(here)
    _pushed(here, there, Update(MAIN, base, None))
    tips = [git_input(here, b"", "commit-tree", f"{base}^{{tree}}", "-p", base, "-m", str(n)) for n in range(8)]  # fmt: skip
    won: list[str] = []

    def race(tip: str) -> None:
        if _pushed(here, there, Update(MAIN, tip, base, force=True)) == {MAIN: Fate.DONE}:
            won.append(tip)

    threads = [threading.Thread(target=race, args=(tip,)) for tip in tips]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert won == [advertised(str(there), ACCESS)[MAIN]]


def test_hooks_of_the_session_do_not_run(here: Path, there: Path, tmp_path: Path) -> None:
    for name in ("pre-push", "post-update", "reference-transaction", "post-checkout"):
        hook(here / ".git", name, f"touch {tmp_path}/ran; exit 1")

    assert _pushed(here, there, Update(MAIN, _id(here), None)) == {MAIN: Fate.DONE}
    assert not (tmp_path / "ran").exists()


# Nothing of a hostile repository or configuration runs


def test_configuration_of_a_remote_at_a_path_runs_nothing(here: Path, there: Path, tmp_path: Path) -> None:  # fmt: skip
    evil = f"touch {tmp_path}/ran"
    for name in ("core.fsmonitor", "core.sshCommand", "core.pager", "uploadpack.packObjectsHook", "core.gitProxy", "diff.external", "credential.helper", "core.alternateRefsCommand"):  # fmt: skip
        git(here, "config", name, evil)

    advertised(str(here), ACCESS)
    fetch(there, str(here), ["+refs/heads/*:refs/theirs/*"], ACCESS)

    assert not (tmp_path / "ran").exists()


def test_configuration_of_the_session_changes_no_address(here: Path, there: Path, tmp_path: Path) -> None:  # fmt: skip
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
    evil.chmod(0o755)
    git(here, "config", f"url.ext::{evil} .insteadOf", f"{there}/")
    git(here, "config", f"remote.{there}.receivepack", str(evil))
    git(here, "config", f"remote.{there}.url", str(there))
    git(here, "config", "core.sshCommand", str(evil))

    assert _pushed(here, there, Update(MAIN, _id(here), None)) == {MAIN: Fate.DONE}
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "address",
    ["ext::touch /tmp/pwned", "-oProxyCommand=touch /tmp/pwned", "--upload-pack=touch /tmp/pwned",
     "ssh://-oProxyCommand=touch%20x/y", "fd::7", "git://127.0.0.1/x", "ftp://127.0.0.1/x",
     "http://example.com/x", "https://ada:secret@example.com/x", "host:-x", "\x1b[2J"],
)  # fmt: skip
def test_address_that_could_do_harm_is_refused(address: str) -> None:
    with pytest.raises(InvalidError) as caught:
        advertised(address, ACCESS)

    assert "secret" not in caught.value.message
    assert not Path("/tmp/pwned").exists()


# Errors


def test_no_repository_at_a_path(tmp_path: Path) -> None:
    for place in (tmp_path / "nothing", tmp_path):
        with pytest.raises(RemoteNotFoundError) as caught:
            advertised(str(place), ACCESS)
        assert str(place) in caught.value.message


def test_host_that_is_not_there() -> None:
    with pytest.raises(RemoteUnreachableError, match="cannot be found"):
        advertised("ssh://git@host.invalid/x", ACCESS)


@pytest.mark.parametrize("scheme", ["ssh", "https", "http"])
def test_port_that_nobody_listens_on(scheme: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    with pytest.raises(RemoteUnreachableError, match="does not answer"):
        advertised(f"{scheme}://127.0.0.1:{port}/x", ACCESS)


def test_repository_of_another_hash_is_named(tmp_path: Path) -> None:
    place = tmp_path / "new.git"
    git(tmp_path, "init", "-q", "--bare", "--object-format=sha256", str(place))
    tree = git_input(place, b"", "hash-object", "-w", "-t", "tree", "--stdin")
    tip = git_input(place, b"", "commit-tree", tree, "-m", "x")
    git(place, "update-ref", MAIN, tip)

    with pytest.raises(UntrustedError):
        advertised(str(place), ACCESS)


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.", RemoteAuthError),
        ("Host key verification failed.\nfatal: Could not read from remote repository.", RemoteAuthError),
        ("fatal: Authentication failed for 'https://h/x/'", RemoteAuthError),
        ("fatal: could not read Username for 'https://h': terminal prompts disabled", RemoteAuthError),
        ("fatal: unable to access 'https://h/': SSL certificate problem: self signed certificate", RemoteAuthError),
        ("fatal: unable to access 'https://h/': Could not resolve host: h", RemoteUnreachableError),
        ("ssh: connect to host h port 22: Connection timed out", RemoteUnreachableError),
        ("error: RPC failed; curl 28 Operation too slow.", RemoteUnreachableError),
        ("fatal: the remote end hung up unexpectedly\nfatal: early EOF", RemoteUnreachableError),
        ("fetch-pack: unexpected disconnect while reading sideband packet", RemoteUnreachableError),
        ("error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502", RemoteUnreachableError),
        ("", RemoteUnreachableError),
        ("fatal: repository 'https://h/x/' not found", RemoteNotFoundError),
        ("ERROR: Repository not found.\nfatal: Could not read from remote repository.", RemoteNotFoundError),
        ("fatal: '/x' does not appear to be a git repository", RemoteNotFoundError),
        ("remote: fatal: write error: No space left on device\nerror: remote unpack failed: index-pack abnormal exit", RemoteRefusedError),
        ("fatal: unable to access 'https://h/x/': The requested URL returned error: 301", RemoteRefusedError),
        ("fatal: fsck error in packed object\nfatal: fetch-pack: invalid index-pack output", UntrustedError),
        ("error: index-pack died of signal 25", UntrustedError),
        ("fatal: Out of memory, malloc failed (tried to allocate 1 bytes)", UntrustedError),
        ("fatal: protocol error: bad line length character: HTTP", UntrustedError),
        ("fatal: something that nobody foresaw", SyncError),
    ],
)  # fmt: skip
def test_words_of_git_have_a_meaning(said: str, error: type[SyncError]) -> None:
    found = addresses.meant(said, "https://h/x")

    assert type(found) is error
    assert found.message.startswith("https://h/x: ")
    assert said.splitlines()[:1] == [] or any(line in found.message for line in said.splitlines())


def test_secrets_in_words_of_git_are_not_repeated() -> None:
    said = "fatal: unable to access 'https://ada:hunter2@h/x': token tok-123 \x1b[31mrefused"

    found = addresses.meant(said, "h", "tok-123").message

    assert "hunter2" not in found
    assert "tok-123" not in found


# Limits


@contextmanager
def _listening(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """Listen on loopback and treat each connection as told; yield the port."""
    server = socket.create_server(("127.0.0.1", 0))
    kept: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            kept.append(connection)
            try:
                answer(connection)
            except OSError:
                continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        for connection in kept:
            connection.close()
        thread.join(5)


def _silent(_connection: socket.socket) -> None:
    """Say nothing, and do not hang up."""


def _garbage(connection: socket.socket) -> None:
    connection.recv(65536)
    connection.sendall(os.urandom(4096))
    connection.close()


def _nonsense(connection: socket.socket) -> None:
    connection.recv(65536)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\nConnection: close\r\n\r\n"
    connection.sendall(head + b"zzzz this is no packet line" * 100)
    connection.close()


def _endless(connection: socket.socket) -> None:
    connection.recv(65536)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\nConnection: close\r\n\r\n"
    connection.sendall(head + b"001e# service=git-upload-pack\n0000")
    number = 0
    while True:
        line = b"%040x refs/heads/b%08d\n" % (number + 1, number)
        connection.sendall(b"%04x%s" % (len(line) + 4, line))
        number += 1


@pytest.mark.parametrize("scheme", ["http", "ssh"])
def test_silent_server_is_given_up(scheme: str) -> None:
    access = RemoteAccess(surroundings=os.environ, timeout_seconds=1)

    with _listening(_silent) as port, pytest.raises(RemoteUnreachableError):
        advertised(f"{scheme}://127.0.0.1:{port}/x", access)


@pytest.mark.parametrize("answer", [_garbage, _nonsense], ids=["bytes", "text"])
def test_server_that_talks_nonsense_is_named(answer: Callable[[socket.socket], None]) -> None:
    with _listening(answer) as port, pytest.raises(SyncError) as caught:
        advertised(f"http://127.0.0.1:{port}/x", ACCESS)

    assert f"127.0.0.1:{port}" in caught.value.message
    assert caught.value.message.isprintable()


def test_server_without_end_is_cut_off() -> None:
    limits = Limits(reply_bytes=100_000, memory_bytes=256 << 20)
    access = RemoteAccess(surroundings=os.environ, total_seconds=3)

    with _listening(_endless) as port, pytest.raises(SyncError):
        advertised(f"http://127.0.0.1:{port}/x", access, limits)


def test_more_than_the_limit_is_not_taken(here: Path, there: Path) -> None:
    (here / "large").write_bytes(os.urandom(4 << 20))
    git(here, "add", "large")
    git(here, "commit", "-q", "-m", "large")

    with pytest.raises(UntrustedError, match="more than the limit"):
        fetch(there, str(here), ["+refs/heads/*:refs/theirs/*"], ACCESS, Limits(received_bytes=1 << 20))  # fmt: skip

    assert not list((there / "objects" / "pack").glob("*.pack"))
    assert sum(path.stat().st_size for path in there.rglob("*") if path.is_file()) < 2 << 20


def test_interrupt_ends_what_was_started(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from smp_git.git.transport import RemoteAccess as Access, advertised
# A shell lets what it starts in the background ignore an interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
print("ready", flush=True)
advertised(f"http://127.0.0.1:{sys.argv[1]}/x", Access(surroundings=os.environ))
"""
    with _listening(_silent) as port:
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(port)],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert child.stdout is not None
        child.stdout.readline()
        address = f"http://127.0.0.1:{port}/x"
        _until(lambda: _commands(address))
        child.send_signal(signal.SIGINT)
        child.wait(20)
        child.stdout.close()

        _until(lambda: not _commands(address))


def _commands(part: str) -> list[str]:
    """Return the command lines of running processes that hold a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if part in line:
            found.append(line)
    return found


def _until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# Secrets


class _Server(ThreadingHTTPServer):
    """Asks for a password, and remembers what it was told and what ran meanwhile."""

    def __init__(self, elsewhere: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.elsewhere = elsewhere
        self.told: list[str | None] = []
        self.running: list[str] = []


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server: Any = self.server
        given = self.headers.get("Authorization")
        server.told.append(given)
        server.running += _commands("127.0.0.1")
        if server.elsewhere:
            self.send_response(302)
            self.send_header("Location", server.elsewhere + self.path)
        elif given is None or _basic(given).endswith(":"):
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
        else:
            self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def _serving(elsewhere: str = "") -> Iterator[_Server]:
    with _Server(elsewhere) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


SECRET = "tok-5e2f9a71c4"


def _basic(given: str | None) -> str:
    assert given is not None
    return base64.b64decode(given.removeprefix("Basic ")).decode()


@pytest.mark.parametrize(
    ("user", "login"), [("", f"x-access-token:{SECRET}"), ("ada@", f"ada:{SECRET}")]
)
def test_token_reaches_the_host_and_nobody_else(user: str, login: str, here: Path) -> None:
    access = RemoteAccess(surroundings=os.environ, token=SECRET)

    with _serving() as server:
        address = f"http://{user}127.0.0.1:{server.server_port}/x"
        with pytest.raises(RemoteAuthError) as caught:
            push(here / ".git", address, [Update(MAIN, _id(here), None)], access)

    assert _basic(server.told[-1]) == login
    assert server.running
    assert all(SECRET not in line for line in server.running)
    assert SECRET not in caught.value.message
    assert SECRET not in repr(access)
    assert all(SECRET.encode() not in p.read_bytes() for p in here.rglob("*") if p.is_file())


def test_token_does_not_follow_to_another_host() -> None:
    with (
        _serving() as other,
        _serving(f"http://localhost:{other.server_port}") as first,
        pytest.raises(SyncError),
    ):
        advertised(f"http://127.0.0.1:{first.server_port}/x", RemoteAccess(token=SECRET))

    assert other.told == []


def test_without_a_token_nobody_is_asked(isolated_environment: Path, tmp_path: Path) -> None:
    helper = f"!f() {{ touch {tmp_path}/asked; echo username=eve; echo password=x; }}; f"
    (isolated_environment / ".gitconfig").write_text(f'[credential]\n\thelper = "{helper}"\n')

    with _serving() as server:
        with pytest.raises(RemoteAuthError):
            advertised(f"http://127.0.0.1:{server.server_port}/x", ACCESS)
        assert server.told == [None]
        assert not (tmp_path / "asked").exists()

        with pytest.raises(RemoteAuthError):
            advertised(f"http://127.0.0.1:{server.server_port}/x", RemoteAccess(surroundings=os.environ, ask=True))  # fmt: skip
        assert _basic(server.told[-1]) == "eve:x"


def test_token_stays_away_from_remotes_at_a_path(here: Path, there: Path, tmp_path: Path) -> None:
    hook(there, "pre-receive", f"env > {tmp_path}/seen")

    _pushed(here, there, Update(MAIN, _id(here), None), access=RemoteAccess(surroundings={**os.environ, "SMP_TOKEN": SECRET}, token=SECRET))  # fmt: skip

    assert SECRET not in (tmp_path / "seen").read_text()


def test_ssh_is_told_the_key_and_asks_nobody(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/told\necho "$SSH_AUTH_SOCK" >> {tmp_path}/told\nexit 1\n')  # fmt: skip
    program.chmod(0o755)
    around = {"PATH": f"{program.parent}:{os.environ['PATH']}", "SSH_AUTH_SOCK": "/run/agent", "SSH_ASKPASS": "/bin/true"}  # fmt: skip

    with pytest.raises(SyncError):
        advertised("git@host:memory/shop.git", RemoteAccess(surroundings=around, ssh_key=tmp_path / "my key"))  # fmt: skip

    told = (tmp_path / "told").read_text().splitlines()
    assert "BatchMode=yes" in told
    assert told[told.index("-i") + 1] == str(tmp_path / "my key")
    assert "IdentitiesOnly=yes" in told
    assert told[-1] == "/run/agent"


# Odd servers and processes


def test_server_of_plain_files_is_limited_as_well(here: Path, there: Path, tmp_path: Path) -> None:
    """A server without Git is read file by file, past Git's own checks."""
    git(here, "update-server-info")
    with plain_files(here) as folder:
        address = f"{folder}.git"
        assert advertised(address, ACCESS) == {MAIN: _id(here)}
        with pytest.raises(SyncError):
            fetch(there, address, ["+refs/heads/*:refs/theirs/*"], ACCESS, Limits(received_bytes=100))  # fmt: skip
        fetch(there, address, ["+refs/heads/*:refs/theirs/*"], ACCESS)

    assert _id(there, "refs/theirs/main") == _id(here)
    assert git(there, "fsck").strip() == ""


def test_process_that_closes_its_mouth_is_ended() -> None:
    leash = Leash(silence_seconds=0.5, total_seconds=20, reply_bytes=100)

    done = command.run(["sh", "-c", "exec >&- 2>&-; sleep 60"], {}, leash)

    assert done.cut == "silent"
    assert done.status < 0


def test_process_that_leaves_somebody_behind_is_done() -> None:
    """As ssh does when it keeps a connection for the next."""
    leash = Leash(silence_seconds=20, total_seconds=20, reply_bytes=100)
    mark = "17.7117"

    done = command.run(["sh", "-c", f"echo done; sleep {mark} & exit 3"], {"PATH": os.environ["PATH"]}, leash)  # fmt: skip

    assert (done.status, done.reply, done.cut) == (3, b"done\n", "")
    assert _commands(f"sleep {mark}")


def test_children_end_with_what_was_cut_off() -> None:
    leash = Leash(silence_seconds=0.5, total_seconds=20, reply_bytes=100)
    mark = "61.7173"

    command.run(["sh", "-c", f"trap '' TERM; sleep {mark} & wait"], {"PATH": os.environ["PATH"]}, leash)  # fmt: skip

    _until(lambda: not _commands(f"sleep {mark}"))


def test_limits_hold_for_what_is_started() -> None:
    leash = Leash(silence_seconds=20, total_seconds=20, reply_bytes=1000, file_bytes=1 << 20, memory_bytes=64 << 20, cpu_seconds=7)  # fmt: skip

    done = command.run(["sh", "-c", "sh -c 'ulimit -f; ulimit -d; ulimit -t; ulimit -c'"], {"PATH": os.environ["PATH"]}, leash)  # fmt: skip

    assert done.reply.split() == [b"2049", b"65536", b"7", b"0"]
