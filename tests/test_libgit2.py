"""A small session is read without libgit2, and what libgit2 refuses is refused all the same."""

from __future__ import annotations

import os

import pytest

from smp_git import Session, Store
from smp_git.git.repository import Repository
from smp_git.model.errors import FormatError
from tests.support import git, python


@pytest.fixture
def shop(store: Store) -> Session:
    with store.create_session("shop") as session:
        session.add("decision", "Use OAuth\nbecause of the audit")
    return session


def test_a_question_loads_libgit2_only_for_packs(shop: Session) -> None:
    code = (
        "import sys; from smp_git import Store\n"
        "with Store.open(sys.argv[1]).session('shop') as session:\n"
        "    hits = session.query('oauth', limit=5)\n"
        "    print([hit.memory.title for hit in hits], 'pygit2' in sys.modules)\n"
    )
    for is_packed in (False, True):
        if is_packed:
            git(shop.path, "repack", "-adq")
            git(shop.path, "prune-packed")
        assert python(code, shop.path.parents[1]).stdout == f"['Use OAuth'] {is_packed}\n"


def test_what_is_checked_out_is_read_from_packs_only_if_somebody_changed_it(shop: Session) -> None:
    code = (
        "import sys; from smp_git import Store\n"
        "with Store.open(sys.argv[1]).session('shop') as session:\n"
        "    hits = session.query('oauth', limit=5)\n"
        "    print([hit.memory.content for hit in hits], 'pygit2' in sys.modules)\n"
    )
    git(shop.path, "repack", "-adq")
    git(shop.path, "prune-packed")
    place, said = shop.path.parents[1], ["Use OAuth\nbecause of the audit"]
    with Store.open(place).session("shop") as session:
        session.query("oauth")
        # It is in files of its own until the next time that they are packed.
        session.add("turn", "Who decided that?", role="user")
    # What is new is looked at in its own folder, and the rest is known.
    assert python(code, place).stdout == f"{said} False\n"
    (file,) = (shop.path / "decisions").rglob("DEC-*")
    whole = file.read_text()
    for other in (whole.replace("OAuth", "passwords"), "", None):
        file.unlink() if other is None else file.write_text(other)
        assert python(code, place).stdout == f"{said} True\n"
    file.write_text(whole)
    with Store.open(place).session("shop") as session:
        session.delete("DEC-0001", reason="wrong")
    file.parent.mkdir(parents=True)
    file.write_text(whole)
    assert python(code, place).stdout.startswith("[] ")
    file.unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_session_of_another_user_is_refused(shop: Session) -> None:
    shop.close()
    for place in (shop.path, shop.path / ".git"):
        os.chown(place, 12345, 12345)
        with pytest.raises(FormatError, match="belongs to another user"):
            Repository(shop.path)
        os.chown(place, 0, 0)
    Repository(shop.path).close()


def test_what_is_not_in_the_usual_form_is_left_to_libgit2(shop: Session) -> None:
    shop.close()
    code = (
        "import sys; from pathlib import Path\n"
        "from smp_git.git.repository import Repository\n"
        "Repository(Path(sys.argv[1])); print('pygit2' in sys.modules)"
    )
    config = shop.path / ".git/config"
    usual = config.read_text()
    for said, is_loaded in (
        (usual, False),
        (usual + '[remote "origin"]\n\turl = x\n; a comment\n', False),
        (usual.replace("= 0", "= 1") + "[extensions]\n\tnoop = true\n", True),
        (usual + "[user]\n\tname = a\\\n  b\n", True),
    ):
        config.write_text(said)
        assert python(code, shop.path).stdout == f"{is_loaded}\n"
