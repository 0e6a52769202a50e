"""Real servers on loopback: sshd with git-shell, nginx with git-http-backend, a proxy that cuts."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

HOST = "127.0.0.1"
_BACKEND = "/usr/lib/git-core/git-http-backend"
_STARTING_SECONDS = 30.0


def program(name: str) -> str:
    """Return a program of the system; skip the test where it is missing."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/usr/lib/git-core:/usr/bin")
    if found is None:
        pytest.skip(f"{name} is not installed; .ci/run installs it")
    return found


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port


def is_root() -> bool:
    """Whether the tests run as root."""
    return os.geteuid() == 0


class Server:
    """Processes that serve a folder of bare repositories on a port."""

    def __init__(self, folder: Path, repositories: Path) -> None:
        self.folder = folder
        self.repositories = repositories
        self.port = free_port()
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the processes and wait until somebody answers at the port."""
        for arguments in self._commands():
            log = (self.folder / "log").open("ab")
            # In a group of its own, so that what it starts ends with it.
            self._running.append(subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=self._environment()))  # fmt: skip
            log.close()
        deadline = time.monotonic() + _STARTING_SECONDS
        while True:
            with suppress(OSError), socket.create_connection((HOST, self.port), timeout=1):
                return
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill the server and everything that it started, as a power cut would."""
        for process in self._running:
            for member in _below(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(member, signal.SIGKILL)
            process.wait()
        self._running.clear()

    def busy_seconds(self) -> float:
        """Return the processor time of the server and of everything that it started."""
        ticks = 0
        for process in self._running:
            for member in _below(process.pid):
                with suppress(OSError):
                    said = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
                    # Its own, and that of those it has waited for.
                    ticks += sum(map(int, said[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def _commands(self) -> Sequence[Sequence[str]]:
        raise NotImplementedError

    def _environment(self) -> dict[str, str]:
        return {"PATH": "/usr/bin:/bin", "HOME": str(self.folder)}


def _below(pid: int) -> list[int]:
    """Return a process and everything that descends from it, or was left by it in its group."""
    parents: dict[int, tuple[int, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1]), int(fields[3])
    found = [pid]
    for name in found:
        found += [each for each, (parent, _) in parents.items() if parent == name]
    return found + [each for each, (_, session) in parents.items() if session == pid and each not in found]  # fmt: skip


class SshServer(Server):
    """sshd that lets one key in, to git-shell or another command alone."""

    def __init__(self, folder: Path, repositories: Path) -> None:
        super().__init__(folder, repositories)
        self.key = self._new_key("key")
        self.wrong_key = self._new_key("wrong-key")
        self.host_key = self._new_key("host-key")
        self.gives(f'{program("git-shell")} -c \\"$SSH_ORIGINAL_COMMAND\\"')
        if is_root():
            # sshd insists on it, and the package's own service makes it.
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        (folder / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress {HOST}\nHostKey {self.host_key}\nPidFile none\n"
            f"AuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\nUsePAM no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            "PermitRootLogin prohibit-password\nPermitUserRC no\nUseDNS no\nMaxStartups 100\n"
        )
        self.knows(self.host_key)

    def address(self, name: str, port: int | None = None) -> str:
        """Return the address of a repository, perhaps through another port."""
        return f"ssh://{getpass.getuser()}@{HOST}:{port or self.port}{self.repositories / name}"

    def gives(self, command: str) -> None:
        """Let whoever has the key run a command alone."""
        line = f'command="{command}",restrict {_public(self.key)}\n'
        (self.folder / "authorized_keys").write_text(line)

    def connections(self) -> int:
        """Return how often somebody was let in."""
        return (self.folder / "log").read_text().count("Accepted publickey")

    def knows(self, host_key: Path) -> None:
        """Let the client know the server, on any port, by a key."""
        lines = f"* {_public(host_key)}\n"
        (self.folder / "known_hosts").write_text(lines)

    def client(self) -> Path:
        """Return a folder for the path in which ssh is configured for this server."""
        place = self.folder / "bin"
        place.mkdir(exist_ok=True)
        options = f"-F /dev/null -o UserKnownHostsFile={self.folder}/known_hosts -o StrictHostKeyChecking=yes -o GlobalKnownHostsFile=/dev/null"  # fmt: skip
        (place / "ssh").write_text(f'#!/bin/sh\nexec {program("ssh")} {options} "$@"\n')
        (place / "ssh").chmod(0o755)
        return place

    def _new_key(self, name: str) -> Path:
        subprocess.run([program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name], check=True)  # fmt: skip
        return self.folder / name

    def _commands(self) -> Sequence[Sequence[str]]:
        return [[program("sshd"), "-D", "-e", "-f", str(self.folder / "sshd_config")]]


def _public(key: Path) -> str:
    return " ".join(key.with_suffix(".pub").read_text().split()[:2])


class HttpServer(Server):
    """nginx before git-http-backend, which lets in whoever has the password."""

    user = "ada"
    password = "correct horse"

    def __init__(self, folder: Path, repositories: Path) -> None:
        super().__init__(folder, repositories)
        (folder / "passwords").write_text(f"{self.user}:{{PLAIN}}{self.password}\n")
        for name in ("body", "proxy", "fastcgi", "uwsgi", "scgi"):
            (folder / name).mkdir()
        self.runs(f'exec {_BACKEND} "$@"')
        account = f"user {getpass.getuser()};" if is_root() else ""
        (folder / "nginx.conf").write_text(f"""\
{account}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    client_max_body_size 0;
    server {{
        listen {HOST}:{self.port};
        auth_basic "memory";
        auth_basic_user_file {folder}/passwords;
        location / {{
            fastcgi_pass unix:{folder}/cgi;
            fastcgi_request_buffering off;
            fastcgi_buffering off;
            fastcgi_param SCRIPT_FILENAME {folder}/backend;
            fastcgi_param GIT_PROJECT_ROOT {repositories};
            fastcgi_param GIT_HTTP_EXPORT_ALL "";
            fastcgi_param PATH_INFO $uri;
            fastcgi_param REMOTE_USER $remote_user;
            fastcgi_param REMOTE_ADDR $remote_addr;
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param CONTENT_TYPE $content_type;
            fastcgi_param CONTENT_LENGTH $content_length;
            fastcgi_param HTTP_CONTENT_ENCODING $http_content_encoding;
            fastcgi_param HTTP_GIT_PROTOCOL $http_git_protocol;
        }}
    }}
}}
""")

    def runs(self, script: str) -> None:
        """Let a script answer each request."""
        (self.folder / "backend").write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / "backend").chmod(0o755)

    def busy_seconds(self) -> float:
        """Return the processor time of nginx, and of what answers, as `counts` has it told."""
        told = (self.folder / "times").read_text() if (self.folder / "times").exists() else ""
        spent = (each.rstrip("s").split("m") for each in told.split())
        return super().busy_seconds() + sum(60 * int(m) + float(s) for m, s in spent)

    def counts(self) -> None:
        """Let each answer tell its time: fcgiwrap waits for none, so the system adds nothing up.

        Of the shells, bash tells milliseconds.
        """
        self.runs(
            f'exec env --default-signal=CHLD bash -c "{_BACKEND}; times >>{self.folder}/times"'
        )

    def address(self, name: str, port: int | None = None) -> str:
        """Return the address of a repository, perhaps through another port."""
        return f"http://{self.user}@{HOST}:{port or self.port}/{name}"

    def start(self) -> None:
        """Start nginx and what it hands requests to."""
        (self.folder / "cgi").unlink(missing_ok=True)
        super().start()
        deadline = time.monotonic() + _STARTING_SECONDS
        while not (self.folder / "cgi").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def _commands(self) -> Sequence[Sequence[str]]:
        program("git-http-backend")
        return [
            [program("fcgiwrap"), "-c", "4", "-s", f"unix:{self.folder}/cgi"],
            [program("nginx"), "-e", f"{self.folder}/log", "-c", f"{self.folder}/nginx.conf"],
        ]


class Cutter:
    """A proxy on loopback that cuts a connection after so many bytes, from either side."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening = socket.create_server((HOST, 0))
        self.port: int = self._listening.getsockname()[1]
        self.most: int | None = None
        self.passed = 0
        self._counting = threading.Lock()
        self._serving = threading.Thread(target=self._serve, daemon=True)
        self._serving.start()

    def cut_after(self, most: int | None) -> None:
        """Let so many bytes through from now on, over all connections; None: all."""
        with self._counting:
            self.most, self.passed = most, 0

    def close(self) -> None:
        """Listen no longer, and wait until every connection has ended."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._serving.join()
        self._listening.close()

    def _serve(self) -> None:
        connections = []
        with suppress(OSError):
            while True:
                here, _ = self._listening.accept()
                connections.append(threading.Thread(target=self._connect, args=(here,), daemon=True))  # fmt: skip
                connections[-1].start()
        for each in connections:
            each.join()

    def _connect(self, here: socket.socket) -> None:
        with here, suppress(OSError), socket.create_connection((HOST, self._target)) as there:
            ways = [threading.Thread(target=self._carry, args=pair, daemon=True) for pair in ((here, there), (there, here))]  # fmt: skip
            for each in ways:
                each.start()
            for each in ways:
                each.join()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(4096):
                allowed = self._allowed(len(data))
                target.sendall(data[:allowed])
                if allowed < len(data):
                    break
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _allowed(self, size: int) -> int:
        with self._counting:
            allowed = size if self.most is None else max(0, min(size, self.most - self.passed))
            self.passed += allowed
            return allowed
