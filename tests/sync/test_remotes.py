"""The remotes of a session: addresses, names, the store's pattern, settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.git.addresses import create_bare, parse
from smp_git.git.transport import RemoteAccess, advertised
from smp_git.model.errors import (
    AlreadyExistsError,
    InvalidError,
    LockedError,
    NotFoundError,
    RefusedError,
)
from smp_git.read.replica import FILES, Use, use_of
from smp_git.sync import remotes
from tests.support import git, own, unlisted
from tests.sync.support import Machine

BASE = Path("/srv/store")


@pytest.mark.parametrize(
    ("text", "kind", "host", "path"),
    [
        ("/srv/memory/shop.git", "path", "", "/srv/memory/shop.git"),
        ("../shop.git", "path", "", "/srv/shop.git"),
        ("a folder/shop.git", "path", "", "/srv/store/a folder/shop.git"),
        ("./host:shop.git", "path", "", "/srv/store/host:shop.git"),
        ("file:///srv/a%20b.git", "path", "", "/srv/a b.git"),
        ("git@host:memory/shop.git", "ssh", "host", "memory/shop.git"),
        ("host.example.com:shop.git", "ssh", "host.example.com", "shop.git"),
        ("git@[::1]:shop.git", "ssh", "::1", "shop.git"),
        ("ssh://git@host:2222/memory/shop.git", "ssh", "host", "/memory/shop.git"),
        ("https://host/memory/shop.git", "https", "host", "/memory/shop.git"),
        ("https://ada@host:8443/shop.git", "https", "host", "/shop.git"),
        ("http://127.0.0.1:8080/shop.git", "http", "127.0.0.1", "/shop.git"),
        ("http://localhost/shop.git", "http", "localhost", "/shop.git"),
        ("http://[::1]/shop.git", "http", "::1", "/shop.git"),
    ],
)
def test_address_is_taken_apart(text: str, kind: str, host: str, path: str) -> None:
    found = parse(text, BASE)

    assert (found.kind, found.host, found.path) == (kind, host, path)


@pytest.mark.parametrize(
    "text",
    ["", "-x", "--upload-pack=x", "ext::sh -c x", "a::b", "git://host/x", "ftp://host/x", "http://host/x",
     "http://127.0.0.1.example.com/x", "https://host", "https://host/x?y=z", "https://host/x#y", "https:///x",
     "ssh://-oProxyCommand=x/y", "ssh://%2doProxyCommand=x/y", "-user@host:x", "user@-host:x", "host:-x",
     "ssh://host:99999/x", "file://host/x", "host:", "~/x", "a\nb", "a\0b", "x" * 5000, "\udce9",
     "https://host\\@evil/x", "http://127.0.0.1@evil/x"],
)  # fmt: skip
def test_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidError) as caught:
        parse(text, BASE)

    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    "text",
    ["https://ada:hunter2@host/x", "ssh://ada:hunter2@host/x", "http://:hunter2@localhost/x",
     "ada:hunter2@host:x", "https://ada:hunter2@host", "ftp://ada:hunter2@host/x", "-://a:hunter2@h/x"],
)  # fmt: skip
def test_password_in_an_address_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InvalidError) as caught:
        parse(text, BASE)

    assert "hunter2" not in caught.value.message


def test_remote_is_one_that_git_knows(session: Session, tmp_path: Path) -> None:
    remotes.add(session.path, "home", parse(str(tmp_path / "home.git"), BASE))

    assert git(session.path, "remote", "-v").splitlines()[0] == f"home\t{tmp_path}/home.git (fetch)"
    assert git(session.path, "config", "remote.home.fetch").strip() == "+refs/heads/*:refs/remotes/home/*"  # fmt: skip


def test_remote_of_a_person_is_known(session: Session) -> None:
    git(session.path, "remote", "add", "origin", "../other.git")

    found = remotes.remotes(session.path, None, BASE)

    assert found["origin"].address.text == str(session.path.parent / "other.git")
    assert found["origin"].is_own


@pytest.mark.parametrize(
    ("text", "reason"),
    [("https://ada:hunter2@host/x", "password"), ("git://host/x", "not used"), ("ext::sh x", "programs")],
)  # fmt: skip
def test_remote_that_cannot_be_used_stands_in_nobodys_way(text: str, reason: str, session: Session) -> None:  # fmt: skip
    git(session.path, "remote", "add", "theirs", text)
    git(session.path, "remote", "add", "origin", "/x")

    found = remotes.remotes(session.path, None, BASE)

    assert remotes.chosen(found, None).address.text == "/x"
    assert "hunter2" not in str(found)
    with pytest.raises(InvalidError, match=reason):
        advertised(found["theirs"].address.text, RemoteAccess())


def test_remotes_are_renamed_and_removed(session: Session, tmp_path: Path) -> None:
    remotes.add(session.path, "a", parse(str(tmp_path), BASE))
    git(session.path, "update-ref", "refs/remotes/a/main", "HEAD")

    remotes.rename(session.path, "a", "b")
    assert list(remotes.remotes(session.path, None, BASE)) == ["b"]
    assert "refs/remotes/b/main" in git(session.path, "for-each-ref")

    remotes.remove(session.path, "b")
    assert remotes.remotes(session.path, None, BASE) == {}
    assert "refs/remotes" not in git(session.path, "for-each-ref")


@pytest.mark.parametrize("name", ["", "-x", "a/b", "a b", "..", "x.lock", "é", "a" * 65])
def test_name_that_is_none_is_refused(name: str, session: Session) -> None:
    with pytest.raises(InvalidError):
        remotes.add(session.path, name, parse("/x", BASE))


def test_remote_that_is_there_or_not(session: Session) -> None:
    remotes.add(session.path, "a", parse("/x", BASE))

    with pytest.raises(AlreadyExistsError):
        remotes.add(session.path, "a", parse("/y", BASE))
    with pytest.raises(NotFoundError, match="'b'"):
        remotes.remove(session.path, "b")
    with pytest.raises(NotFoundError):
        remotes.rename(session.path, "b", "c")
    remotes.add(session.path, "c", parse("/y", BASE))
    with pytest.raises(AlreadyExistsError):
        remotes.rename(session.path, "a", "c")


def test_configuration_that_is_locked_is_named(session: Session) -> None:
    lock = session.path / ".git" / "config.lock"
    lock.touch()

    with pytest.raises(LockedError, match=r"config\.lock"):
        remotes.add(session.path, "a", parse("/x", BASE))
    lock.unlink()


def test_pattern_of_the_store_names_the_origin(session: Session) -> None:
    found = remotes.remotes(session.path, "git@host:memory/{session}.git", BASE)["origin"]

    assert (found.address.text, found.is_own) == ("git@host:memory/shop.git", False)
    assert remotes.remotes(session.path, "mirror/{session}.git", BASE)["origin"].address.text == "/srv/store/mirror/shop.git"  # fmt: skip

    remotes.add(session.path, "origin", parse("/own.git", BASE))
    assert remotes.remotes(session.path, "git@host:{session}", BASE)["origin"].address.text == "/own.git"  # fmt: skip


def test_remote_is_chosen_by_name_or_because_it_is_the_only_one(session: Session) -> None:
    for name in ("b", "a"):
        with pytest.raises((NotFoundError, RefusedError)):
            remotes.chosen(remotes.remotes(session.path, None, BASE), "missing")
        remotes.add(session.path, name, parse(f"/{name}", BASE))
        if name == "b":
            assert remotes.chosen(remotes.remotes(session.path, None, BASE), None).name == "b"
    found = remotes.remotes(session.path, None, BASE)
    assert remotes.chosen(found, "a").name == "a"
    with pytest.raises(RefusedError, match="several"):
        remotes.chosen(found, None)
    with pytest.raises(NotFoundError):
        remotes.chosen({}, None)
    remotes.add(session.path, "origin", parse("/o", BASE))
    assert remotes.chosen(remotes.remotes(session.path, None, BASE), None).name == "origin"


def test_repository_is_made_at_a_path_once(tmp_path: Path) -> None:
    place = tmp_path / "new" / "shop.git"
    remotes.create(parse(str(place), BASE))
    remotes.create(parse(str(place), BASE))

    assert git(place, "rev-parse", "--is-bare-repository").strip() == "true"
    assert git(place, "symbolic-ref", "HEAD").strip() == "refs/heads/main"
    assert git(place, "fsck").strip() == ""


def test_repository_is_made_only_where_nothing_is(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    for place in (tmp_path, tmp_path / "file"):
        with pytest.raises(AlreadyExistsError):
            create_bare(place)
    with pytest.raises(InvalidError, match="another machine"):
        remotes.create(parse("git@host:x", BASE))


def test_settings_say_how_remotes_are_reached(store: Store, tmp_path: Path) -> None:
    (store.path / "config.yaml").write_text(
        f"format: 1\nremote: ~/memory/{{session}}.git\nssh_key: {tmp_path}/key\nsync_timeout_seconds: 5\nsync_limit_bytes: 1000\n"
    )
    settings = Store.open(store.path).settings

    way = remotes.access(settings, {"SMP_TOKEN": "tok", "PATH": "/bin"})

    assert settings.remote == f"{os.environ['HOME']}/memory/{{session}}.git"
    assert (way.ssh_key, way.token, way.timeout_seconds, way.ask) == (tmp_path / "key", "tok", 5.0, False)  # fmt: skip
    assert remotes.limits(settings).received_bytes == 1000
    assert "tok" not in repr(way)


@pytest.mark.parametrize(
    "line",
    ["remote: git@host:shop.git", "remote: 3", "ssh_key: relative/key", "ssh_key: 3", "sync_timeout_seconds: 0", "sync_limit_bytes: -1", "remote: ~nobody-here/{session}"],
)  # fmt: skip
def test_setting_that_makes_no_sense_is_refused(line: str, store: Store) -> None:
    config = store.path / "config.yaml"
    config.write_text(f"{line}\n")

    with pytest.raises(InvalidError, match=line.partition(":")[0]):
        Store.open(store.path)
    config.write_text("format: 1\n")


def test_path_that_git_cannot_be_given_is_refused_at_once(tmp_path: Path) -> None:
    for name in ("new\nline", "cr\rx", "bad\udcff"):
        with pytest.raises(InvalidError, match="Git cannot be given a path with such letters"):
            parse("hub.git", tmp_path / name)


def test_a_deletion_forgets_nothing_of_what_was_seen_of_a_remote(tmp_path: Path) -> None:
    hub = tmp_path / "hub.git"
    with Machine(tmp_path, "one").begin(hub) as session:
        session.add("finding", "goes", agent="a")
        session.sync()
        before = session.remote_states()

        session.delete("FIND-0001")

        (now,) = session.remote_states()
        assert now.seen_at == before[0].seen_at
        for ref in git(hub, "for-each-ref", "--format=%(refname)").split():
            git(hub, "update-ref", "-d", ref)
        with pytest.raises(RefusedError, match="is empty, though it held this session"):
            session.sync()


def test_every_local_file_is_on_the_list_whatever_is_done(tmp_path: Path) -> None:
    hub = tmp_path / "hub.git"
    with Machine(tmp_path, "one").begin(hub) as session:
        session.add("finding", "goes", agent="a")
        session.query("goes")
        session.get("FIND-0001")
        file = session.file("FIND-0001")
        file.write_text(file.read_text() + "# by hand\n")
        session.edit("FIND-0001", agent="b", **own(note="x"))
        git(session.path, "add", "-A")
        git(session.path, "commit", "-qm", "by hand")
        session.check()
        session.sync()
        assert unlisted(tmp_path) == []
        session.delete("FIND-0001")
        session.query("Use")
        assert unlisted(tmp_path) == []
    (session.path / ".git/smp/new.json").write_text("{}")
    assert [Path(each).name for each in unlisted(tmp_path)] == ["new.json"]


def test_what_the_list_says_of_a_local_file_is_what_a_deletion_does(tmp_path: Path) -> None:
    with Machine(tmp_path, "one").begin(tmp_path / "hub.git") as session:
        session.add("finding", "goes", agent="a")
        smp = session.path / ".git/smp"
        for name, use in FILES.items():
            if use in (Use.CACHE, Use.CONTENT) and not (smp / name).exists():
                (smp / name).write_text("goes")
        (smp / "remotes.json.tmp").write_text("goes")
        there = {each.name for each in smp.iterdir()}

        session.delete("FIND-0001")

        left = {each.name for each in smp.iterdir()}
        assert {
            name for name in there - left if use_of(name) not in (Use.CACHE, Use.CONTENT)
        } == set()
        assert {name for name in left if use_of(name) in (Use.CACHE, Use.CONTENT)} == set()
