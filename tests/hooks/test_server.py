"""What a guarded server takes and refuses; the pusher is told in a sentence."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from smp_git import Store
from smp_git.git.transport import EMPTY_TREE
from smp_git.write.handle import fold_counts
from tests.hooks.conftest import Person, run_smp
from tests.support import git, git_input

pytestmark = pytest.mark.slow

ONE = "findings/000/FIND-0001.yaml"


def _refs(hub: Person) -> dict[str, str]:
    rows = hub.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(row.split() for row in rows)


def _objects(hub: Person) -> str:
    return hub.git("cat-file", "--batch-all-objects", "--batch-check")


def _refused(pusher: Person, hub: Person, *arguments: str) -> str:
    """Push what must be refused; return what is said; nothing of it may stay on the server."""
    before = _refs(hub), _objects(hub)
    said = pusher.refused("push", "--no-verify", *arguments)
    assert (_refs(hub), _objects(hub)) == before
    assert "Traceback" not in said
    assert "remote: smp: " in said
    return said


def _delete(store: Store, memory_id: str) -> None:
    with store.session("shop") as session:
        session.delete(memory_id, purge=True)


def test_first_push_of_a_session_and_the_next_ones(pushed: Person, hub: Person, store: Store) -> None:  # fmt: skip
    with store.session("shop") as session:
        session.add("finding", "Another", agent="b")
    pushed.git("tag", "v1")
    pushed.git("tag", "-a", "v2", "-m", "noted")
    pushed.git("branch", "aside", "HEAD~1")
    pushed.git("push", "-q", "origin", "main", "aside", "--tags")
    pushed.git("push", "-q", "origin", ":aside")

    assert set(_refs(hub)) == {"refs/heads/main", "refs/tags/v1", "refs/tags/v2"}
    assert hub.git("fsck", "--strict", "--no-dangling") == ""


def test_first_push_without_a_session(shop: Person, hub: Person, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main", "other")
    other = Person(tmp_path / "other")
    other.writes("readme.md", "no session\n")
    other.git("add", "-A")
    other.git("commit", "-q", "-m", "first")

    _refused(other, hub, str(hub.folder), "main")
    assert "holds no session yet" in _refused(shop, hub, str(hub.folder), "main:aside")


def test_foreign_session(pushed: Person, hub: Person, store: Store) -> None:
    with store.create_session("other") as session:
        session.add("finding", "Not this one", agent="a")
    other = Person(store.path / "active" / "other")

    assert "belongs to another session, other" in _refused(other, hub, "--force", str(hub.folder), "main")  # fmt: skip
    assert "belongs to another session, other" in _refused(other, hub, str(hub.folder), "main:aside")  # fmt: skip


def test_deletion_travels_and_a_stale_clone_does_not_bring_it_back(pushed: Person, stale: Person, hub: Person, store: Store) -> None:  # fmt: skip
    _delete(store, "FIND-0001")
    pushed.git("push", "-q", "--force", "origin", "main")
    assert _refs(hub)["refs/heads/main"] == pushed.git("rev-parse", "main").strip()
    stale.changes(ONE, "No MFA", "No second factor")
    stale.git("commit", "-qam", "unaware")

    assert "[rejected]" in stale.refused("push")
    assert "main would bring back what was deleted: FIND-0001" in _refused(stale, hub, "--force", "origin", "main")  # fmt: skip
    assert "aside would bring back what was deleted" in _refused(stale, hub, "origin", "main:aside")
    assert "would bring back what was deleted" in _refused(stale, hub, "origin", "HEAD:refs/tags/v1")  # fmt: skip
    stale.tries("pull", "--no-edit")
    assert "holds what was deleted: FIND-0001" in stale.refused("push")
    assert "would bring back what was deleted: FIND-0001" in _refused(stale, hub, "origin", "main")
    stale.git("reset", "-q", "--hard", "origin/main")


def test_deletion_of_a_clone_is_taken_with_what_others_pushed(pushed: Person, stale: Person, hub: Person, store: Store) -> None:  # fmt: skip
    with store.session("shop") as session:
        session.add("finding", "Meanwhile", agent="b")
    pushed.git("push", "-q")
    with store.session("stale") as session:
        session.delete("FIND-0002", purge=True)
    said = _refused(stale, hub, "--force", "origin", "main")

    assert "main would lose what is here" in said
    assert "smp sync" in said
    stale.git("reset", "-q", "--hard", "HEAD~1")


@pytest.mark.parametrize("back", [1, 3])
def test_forced_push_that_loses_something(pushed: Person, hub: Person, back: int) -> None:
    said = _refused(pushed, hub, "--force", "origin", f"HEAD~{back}:main")

    assert "main would lose what is here, and no deletion explains it" in said


def test_tag_is_not_moved(pushed: Person, hub: Person) -> None:
    pushed.git("push", "-q", "origin", "HEAD:refs/tags/v1")

    assert "tags/v1 would lose" in _refused(pushed, hub, "--force", "origin", "HEAD~1:refs/tags/v1")


def test_tags_follow_a_deletion(pushed: Person, hub: Person, store: Store) -> None:
    pushed.git("tag", "plain", "HEAD~1")
    pushed.git("tag", "-a", "noted", "-m", "noted", "HEAD~1")
    pushed.git("push", "-q", "origin", "--tags")
    _delete(store, "FIND-0001")
    pushed.git("push", "-q", "--force", "origin", "main", "--tags")

    assert _refs(hub)["refs/tags/noted"] == pushed.git("rev-parse", "noted").strip()


def test_main_is_not_removed(pushed: Person, hub: Person) -> None:
    hub.git("config", "receive.denyDeleteCurrent", "ignore")

    assert "main is the session" in _refused(pushed, hub, "origin", ":main")


@pytest.mark.parametrize("ref", ["refs/notes/commits", "refs/stash", "refs/other/x"])
def test_reference_that_no_session_has(pushed: Person, hub: Person, ref: str) -> None:
    assert f"{ref} is not a reference of a session" in _refused(
        pushed, hub, "origin", f"HEAD:{ref}"
    )


def test_one_bad_reference_refuses_the_whole_push(pushed: Person, hub: Person, store: Store) -> None:  # fmt: skip
    with store.session("shop") as session:
        session.add("finding", "Another", agent="b")

    _refused(pushed, hub, "origin", "main", "HEAD:refs/other/x")


def _commit(person: Person, mode: str, path: str, data: bytes) -> str:
    """Return a commit on main with one entry more, made without any check."""
    blob = git_input(person.folder, data, "hash-object", "-w", "--stdin")
    if mode == "160000":
        blob = person.git("rev-parse", "HEAD").strip()
    index = {"GIT_INDEX_FILE": str(person.folder / ".git" / "scratch-index")}
    git_input(person.folder, b"", "read-tree", "HEAD", **index)
    git_input(person.folder, f"{mode} {blob}\t{path}\n".encode(), "update-index", "--index-info", **index)  # fmt: skip
    tree = git_input(person.folder, b"", "write-tree", **index)
    return git_input(person.folder, b"bad\n", "commit-tree", tree, "-p", "HEAD")


@pytest.mark.parametrize(
    ("mode", "path", "data"),
    [
        ("120000", "findings/000/FIND-0009.yaml", b"/etc/passwd"),
        ("160000", "findings/000/sub", b""),
        ("100644", "findings/000/FIND-0009.yaml", b"x: [\n"),
        ("100644", "findings/000/FIND-0001.yaml", b"id: FIND-0002\nkind: finding\n"),
        ("100644", "tombstones.yaml", b"nonsense\n"),
        ("100644", "metadata.yaml", b"nonsense: [\n"),
        ("100644", ".gitattributes", b"* filter=evil\n"),
    ],
    ids=["link", "submodule", "syntax", "other id", "tombstones", "metadata", "attributes"],
)
def test_malformed_content(pushed: Person, hub: Person, mode: str, path: str, data: bytes) -> None:
    commit = _commit(pushed, mode, path, data)

    _refused(pushed, hub, "origin", f"{commit}:main")


def test_access_counts_are_taken(pushed: Person, hub: Person, store: Store) -> None:
    with store.session("shop") as session:
        session.get("FIND-1")
        fold_counts(session._handle, everything=True)
    names = pushed.git("for-each-ref", "--format=%(refname)", "refs/smp").split()
    assert names
    pushed.git("push", "-q", "origin", *(f"+{name}:{name}" for name in names))

    assert names[0] in _refs(hub)


def test_mark_of_a_replica_that_waits_is_taken_and_nothing_else_there(pushed: Person, hub: Person) -> None:  # fmt: skip
    mark = "refs/smp/waiting/k3fq"
    pushed.git("push", "-q", "--no-verify", "origin", f"{EMPTY_TREE}:{mark}")
    assert _refs(hub)[mark] == EMPTY_TREE
    pushed.git("push", "-q", "--no-verify", "origin", f":{mark}")
    assert mark not in _refs(hub)

    assert "not a reference of a session" in _refused(pushed, hub, "origin", f"main:{mark}")


def test_sync_gets_along_with_a_guarded_server(hub: Person, tmp_path: Path, store: Store) -> None:
    with (store.path / "config.yaml").open("a") as config:
        config.write(f"key_dir: {tmp_path / 'keys'}\n")
    with Store.open(store.path, clock=store.clock).create_session("shop") as here:
        here.add("finding", "The password is apple pie", agent="a")
        here.add("finding", "No MFA", agent="a")
        here.add_remote("origin", hub.folder)
        here.sync()
        elsewhere = Store.init(tmp_path / "elsewhere", clock=store.clock)
        (elsewhere.path / "config.yaml").write_text(f"format: 1\nkey_dir: {tmp_path / 'other-keys'}\n")  # fmt: skip
        with Store.open(elsewhere.path, clock=store.clock).clone(str(hub.folder)) as there:
            there.edit("FIND-0001", text="The password is apple tart")
            there.add("finding", "Found there", agent="b")
            here.delete("FIND-0001", purge=True)
            here.sync()
            there.sync()
            here.sync()

            assert here.head == there.head == _refs(hub)["refs/heads/main"]
            assert "apple" not in hub.git("log", "-p", "--all")


# Installing


def test_listed_installed_and_removed(hub: Person, tmp_path: Path) -> None:
    assert run_smp(tmp_path, "hooks", "--server", "hub.git") == "pre-receive  installed\n"
    assert run_smp(tmp_path, "hooks", "remove", "--server", "hub.git") == "pre-receive  missing\n"


def test_own_hook_of_a_server_is_left_alone(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    own = tmp_path / "bare.git/hooks/pre-receive"
    own.write_text("#!/bin/sh\nexit 0\n")
    done = subprocess.run(["smp", "hooks", "install", "--server", "bare.git"], cwd=tmp_path, capture_output=True, text=True)  # fmt: skip

    assert done.stdout == "pre-receive  your own\n"
    assert "left alone, because they are your own: pre-receive" in done.stderr
    assert own.read_text() == "#!/bin/sh\nexit 0\n"


@pytest.mark.parametrize(("path", "said"), [("nowhere", "does not exist"), (".", "is not a Git repository"), ("store/active/shop", "is not a bare repository")])  # fmt: skip
def test_what_is_no_server(shop: Person, tmp_path: Path, path: str, said: str) -> None:
    done = subprocess.run(["smp", "hooks", "install", "--server", path], cwd=tmp_path, capture_output=True, text=True)  # fmt: skip

    assert done.returncode != 0
    assert said in done.stderr


def test_server_finds_the_program_that_installed_the_hook(pushed: Person, hub: Person, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    python = hub.git("config", "smp.python").strip()
    assert os.access(python, os.X_OK)
    pushed.git("commit", "-q", "--allow-empty", "-m", "empty")
    hub.git("config", "smp.python", "/nowhere/python")

    assert "smp-git is not installed on it" in _refused(pushed, hub, "origin", "main")


def test_hooks_of_a_session_are_installed_again(shop: Person, store: Store) -> None:
    hooks = shop.folder / ".git/hooks"
    (hooks / "pre-commit").write_text("#!/bin/sh\nexec smp hook pre-commit\n# of an earlier version\n")  # fmt: skip
    (hooks / "post-merge").write_text("#!/bin/sh\necho mine\n")
    (hooks / "pre-push").unlink()
    (shop.folder / ".git/info/attributes").write_text("* -text -eol -ident -filter -working-tree-encoding\n")  # fmt: skip
    shop.git("config", "--remove-section", "merge.smp")

    assert "pre-commit  older" in run_smp(shop.folder, "hooks")
    shown = run_smp(shop.folder, "hooks", "install").splitlines()
    assert shown == ["post-checkout  installed", "post-commit  installed", "post-merge  your own", "post-rewrite  installed", "pre-commit  installed", "pre-push  installed"]  # fmt: skip
    assert shop.git("check-attr", "merge", ONE) == f"{ONE}: merge: smp\n"
    assert shop.git("config", "merge.smp.driver") == "smp hook merge %O %A %B %P\n"
    shown = run_smp(shop.folder, "hooks", "remove").splitlines()
    assert [line for line in shown if "missing" not in line] == ["post-merge  your own"]


def test_readme_is_taken_and_so_is_its_rewrite(pushed: Person, hub: Person, store: Store) -> None:
    store.maintain()
    pushed.git("push", "-q", "origin", "main")
    stale = pushed.git("rev-parse", "main").strip()
    assert "FIND-0002" in hub.git("show", "main:README.md")
    _delete(store, "FIND-0002")
    store.maintain()

    pushed.git("push", "-q", "--force", "origin", "main")

    assert "FIND-0002" not in hub.git("log", "-p", "--format=", "main", "--", "README.md")
    old = pushed.git("show", "main~1:README.md")
    pushed.writes("README.md", old + "- [FIND-0002](findings/000/FIND-0002.yaml)\n")
    pushed.git("commit", "-q", "--no-verify", "-am", "back again")
    assert stale not in _objects(pushed)
    assert "would bring back what was deleted" in _refused(pushed, hub, "origin", "main")
    pushed.git("reset", "-q", "--hard", "HEAD~1")
