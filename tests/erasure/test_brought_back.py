"""What plain Git brought back past the hooks, deleted once more."""

from __future__ import annotations

from pathlib import Path

import pytest

from smp_git import Session, Store
from tests import independent_scan
from tests.support import git


@pytest.mark.parametrize("others", [0, 1], ids=["alone", "with-another"])
@pytest.mark.parametrize("committed", [False, True], ids=["staged", "committed"])
def test_page_that_came_back_leaves_nothing_staged(
    tmp_path: Path, others: int, committed: bool
) -> None:
    session = _brought_back(tmp_path, others, committed=committed)
    session.delete("FIND-0001" if committed else "DEC-0001")

    assert "index.yaml" not in git(session.path, "diff", "--cached", "--name-only")
    assert not committed or session.check() == ()
    assert session.verify().clean
    git(session.path, "fsck", "--strict")
    (session.path / "findings/000/FIND-0001.yaml").unlink(missing_ok=True)
    assert independent_scan.scan(session.path, [b"xyzzy"]) == []


@pytest.mark.parametrize("purge", [False, True], ids=["deleted", "purged"])
def test_another_deletion_takes_it_out_too(tmp_path: Path, purge: bool) -> None:
    session = _brought_back(tmp_path, 1, committed=True, purge=purge)
    receipt = session.delete("DEC-0001")

    assert receipt.ids == ("DEC-0001",)
    assert session.check() == ()
    assert session.verify().clean
    assert independent_scan.scan(session.path, [b"xyzzy"]) == []
    assert (
        [each.id for each in session.trash()] == ["DEC-0001"]
        if purge
        else ["DEC-0001", "FIND-0001"]
    )


def test_a_redaction_takes_it_out_too(tmp_path: Path) -> None:
    session = _brought_back(tmp_path, 1, committed=True)
    session.redact("Use it")

    assert session.verify().clean
    assert independent_scan.scan(session.path, [b"xyzzy"]) == []


def _brought_back(folder: Path, others: int, *, committed: bool, purge: bool = False) -> Session:
    """Return a session in which plain Git has brought a deleted memory back."""
    store = Store.init(folder / "store")
    (store.path / "config.yaml").write_text(f"format: 1\nkey_dir: {folder / 'keys'}\n")
    session = Store.open(store.path).create_session("shop")
    session.add("finding", "About xyzzy", agent="a")
    session.add("decision", "Use it", agent="a")
    for number in range(others):
        session.add("finding", f"Another {number}", agent="a")
    git(folder, "clone", "-q", str(session.path), "stale")
    session.delete("FIND-0001", purge=purge)
    session.check()
    plain = ("-c", "core.hooksPath=/dev/null")
    git(session.path, *plain, "fetch", "-q", str(folder / "stale"), "main")
    git(session.path, *plain, "checkout", "-q", "FETCH_HEAD", "--", "findings")
    if committed:
        git(session.path, *plain, "commit", "-q", "-m", "by hand")
    assert (session.path / "findings/000/FIND-0001.yaml").exists()
    return session


def test_tombstones_committed_past_the_hooks_are_not_staged_after_a_deletion(
    tmp_path: Path,
) -> None:
    session = _brought_back(tmp_path, 1, committed=True)
    file = session.path / "tombstones.yaml"
    file.write_bytes(file.read_bytes() + b"# mine\n")
    git(session.path, "commit", "-q", "-a", "--no-verify", "-m", "by hand")
    session.delete("DEC-0001")

    assert git(session.path, "diff", "--cached", "--name-only") == ""
