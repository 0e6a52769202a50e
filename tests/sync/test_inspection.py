"""What a remote may send, and what is refused before anything of it is used."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from smp_git import Session
from smp_git.git import command, references, storage
from smp_git.git.objects import RawObjects
from smp_git.git.transport import Limits, RemoteAccess
from smp_git.model.errors import DamagedError, SyncError, UntrustedError
from smp_git.model.memory import CommitId
from smp_git.sync.inspect.inspection import Inspected, inspect
from smp_git.sync.inspect.structure import Bounds
from smp_git.sync.quarantine import Quarantine
from tests.support import git
from tests.sync.hostile import CASES, FILE, FOLDER, LINK, MEMORY, PAST, Forge

Way = Callable[[Forge, Quarantine], dict[str, str]]
_BOUNDS = Bounds()


@pytest.fixture
def forge(session: Session, tmp_path: Path) -> Forge:
    session.add("finding", "the login page has no limit of tries", severity="high")
    session.add("turn", "let us look", role="user")
    return Forge(tmp_path / "remote.git", session.path)


def _own(session: Session) -> list[CommitId]:
    return [CommitId(references.read(session.path / ".git")["refs/heads/main"])]


def _fetched(forge: Forge, held: Quarantine) -> dict[str, str]:
    held.fetch(str(forge.place), RemoteAccess(), Limits())
    return held.refs


def _given(forge: Forge, held: Quarantine) -> dict[str, str]:
    """Put what the remote has into quarantine as it is, past Git's own checks."""
    shutil.copytree(forge.place / "objects", held.git / "objects", dirs_exist_ok=True)
    return references.read(forge.place)


def _packed(forge: Forge, held: Quarantine) -> dict[str, str]:
    """Do the same as one pack, where Git can pack it."""
    refs = _given(forge, held)
    loose = dict(storage.loose(held.git / "objects"))
    with suppress(DamagedError):
        command.pack_objects(held.git, loose)
        for path in loose.values():
            path.unlink()
    return refs


_WAYS: tuple[Way, ...] = (_fetched, _given, _packed)


def _arrived(way: Way, forge: Forge, held: Quarantine, session: Session, bounds: Bounds = _BOUNDS) -> Inspected:  # fmt: skip
    return inspect(held.repository, way(forge, held), _own(session), bounds)


def _inspected(forge: Forge, session: Session, bounds: Bounds = _BOUNDS) -> Inspected:
    """Return what is found, or raise why it is refused: the same, packed or not."""
    told: list[Inspected | UntrustedError] = []
    for way in (_given, _packed):
        with Quarantine(session.path / ".git") as held:
            try:
                told.append(_arrived(way, forge, held, session, bounds))
            except UntrustedError as error:
                told.append(error)
    loose, packed = told
    if isinstance(packed, UntrustedError):
        assert isinstance(loose, UntrustedError)
        raise packed
    assert isinstance(loose, Inspected)
    assert loose == packed
    return packed


def _state(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and ".git/syncing" not in str(path)
    }


@pytest.mark.parametrize("way", _WAYS, ids=["fetched", "past Git", "packed past Git"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_what_a_session_does_not_hold_is_refused(name: str, way: Way, forge: Forge, session: Session, tmp_path: Path) -> None:  # fmt: skip
    CASES[name](forge)
    session.close()
    before, outside = _state(session.path), sorted(path.name for path in tmp_path.iterdir())

    with Quarantine(session.path / ".git") as held:
        kept = held.path
        with pytest.raises(SyncError if way is _fetched else UntrustedError) as caught:
            _arrived(way, forge, held, session)

    assert "Traceback" not in caught.value.message
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 1000
    assert not kept.exists()
    assert _state(session.path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == outside
    assert not Path("/tmp/pwned").exists()


def _of_the_past(name: str, forge: Forge) -> str:
    """Apply a case, and let a next commit take out what it did; return the first."""
    CASES[name](forge)
    tip = references.read(forge.place)["refs/heads/main"]
    forge.branch(forge.commit(forge.top(), tip))
    return tip


@pytest.mark.parametrize("name", sorted(PAST))
def test_what_does_no_harm_in_the_past_is_taken(name: str, forge: Forge, session: Session) -> None:
    _of_the_past(name, forge)

    assert _inspected(forge, session).commits == 2


@pytest.mark.parametrize("name", sorted(CASES.keys() - PAST))
def test_what_does_harm_is_refused_in_the_past(name: str, forge: Forge, session: Session) -> None:
    _of_the_past(name, forge)

    with pytest.raises(UntrustedError):
        _inspected(forge, session)


@pytest.mark.parametrize("name", sorted(PAST))
def test_what_was_taken_as_past_does_not_come_back(name: str, forge: Forge, session: Session) -> None:  # fmt: skip
    """In two steps: first as history, then at the tip, standing on what is known by then."""
    bad = _of_the_past(name, forge)
    own = session.path / ".git"
    with Quarantine(own) as held:
        refs = _given(forge, held)
        inspect(held.repository, refs, _own(session))
        held.adopt()
    git(own, "update-ref", "refs/heads/main", refs["refs/heads/main"])
    forge.branch(forge.commit(_tree(forge, bad), refs["refs/heads/main"]))

    with pytest.raises(UntrustedError):
        _inspected(forge, session)


def _tree(forge: Forge, commit: str) -> str:
    return RawObjects(forge.place).read(bytes.fromhex(commit))[1][5:45].decode()


def _parts(forge: Forge) -> tuple[str, str, str]:
    """Return top folders: half of a repository each, and both halves together."""
    below = forge.folder(b"x")
    left = [(FILE, b"HEAD", forge.blob("ref: refs/heads/main\n")), (FOLDER, b"objects", below)]
    right = [(FILE, b"config", forge.blob("[core]\n")), (FOLDER, b"refs", below)]
    tops = [forge.top((FOLDER, b"notes", forge.tree(rows))) for rows in (left, right, left + right)]
    return tops[0], tops[1], tops[2]


@pytest.mark.parametrize("last", ["a", "main", "z"])
def test_repository_in_pieces_on_branches_is_refused_whole(last: str, forge: Forge, session: Session) -> None:  # fmt: skip
    """In whatever order the branches are looked at: each name alone was seen before."""
    left, right, whole = _parts(forge)
    names = [name for name in ("a", "main", "z") if name != last]
    for name, top in zip((*names, last), (left, right, whole), strict=True):
        forge.branch(forge.commit(top), f"refs/heads/{name}")

    with pytest.raises(UntrustedError, match="repository in the repository"):
        _inspected(forge, session)


def test_repository_in_pieces_is_refused_when_it_is_joined(forge: Forge, session: Session) -> None:
    left, right, whole = (forge.commit(top) for top in _parts(forge))
    forge.branch(forge.commit(_tree(forge, whole), left, right))

    with pytest.raises(UntrustedError, match="repository in the repository"):
        _inspected(forge, session)


def test_names_that_are_one_on_some_systems_are_refused_together(forge: Forge, session: Session) -> None:  # fmt: skip
    large, small = ((FILE, name, forge.blob(name)) for name in (b"Notes.md", b"notes.md"))
    forge.branch(forge.commit(forge.top(large)), "refs/heads/a")
    forge.branch(forge.commit(forge.top(small)), "refs/heads/b")
    assert _inspected(forge, session).commits == 2

    forge.branch(forge.commit(forge.top(large, small)))
    with pytest.raises(UntrustedError, match="some systems take for one"):
        _inspected(forge, session)


def test_what_is_here_may_be_sent_again(forge: Forge, session: Session) -> None:
    """What this session stands on is no reason to refuse what is new, whatever it once held."""
    own = session.path / ".git"
    old = forge.commit(forge.top((LINK, b"link", forge.blob("x"))))
    tip = forge.commit(forge.top(), old)
    shutil.copytree(forge.place / "objects", own / "objects", dirs_exist_ok=True)
    git(own, "update-ref", "refs/heads/main", tip)
    new = forge.commit(forge.top((FILE, b"notes.md", forge.blob("notes"))), tip)
    forge.branch(new)

    for again in ([], [old], [old, tip]):
        with Quarantine(own) as held:
            _given(forge, held)
            wanted = [new, *again, *git(forge.place, "rev-list", "--objects", "--no-object-names", new, f"^{tip}").split()]  # fmt: skip
            command.pack_objects(held.git, map(bytes.fromhex, set(wanted)))
            for path in dict(storage.loose(held.git / "objects")).values():
                path.unlink()
            found = inspect(held.repository, references.read(forge.place), [CommitId(tip)])

        assert found.commits == 1


def test_title_with_an_escape_travels(session: Session, tmp_path: Path) -> None:
    session.add("finding", "\x1b[31merror\x1b[0m: \x07 not found \u202e", agent="Zoë")
    session.add("turn", "a\x00b".replace("\x00", "\x01"), role="user")

    with Quarantine(session.path / ".git") as held:
        found = inspect(held.repository, references.read(session.path / ".git"), ())

    assert found.commits == 3


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 100


def test_what_is_sound_is_taken(forge: Forge, session: Session) -> None:
    forge.page(MEMORY.format(id="FIND-0009", text="a text"))

    found = _inspected(forge, session)

    assert found.uid == session.metadata.uid
    assert found.session == "shop"
    assert found.commits == 1


def test_index_that_lies_is_named(forge: Forge, session: Session) -> None:
    line = '- {"id":"FIND-0009","blob":"%s","at":"2026-01-11T14:40:00Z","agent":"eve","title":"../../etc/passwd","size":1}\n'
    text = MEMORY.format(id="FIND-0009", text="a text")
    forge.page(text, index=line % forge.blob(text) + line % ("12" * 20) * 10_000)

    assert _inspected(forge, session).lying == {"refs/heads/main": ("findings/000",)}


def test_index_that_is_missing_is_named(forge: Forge, session: Session) -> None:
    page = forge.tree([(FILE, b"FIND-0009.yaml", forge.blob(MEMORY.format(id="FIND-0009", text="x")))])  # fmt: skip
    forge.pushed((FOLDER, b"findings", forge.tree([(FOLDER, b"000", page)])))

    assert _inspected(forge, session).lying == {"refs/heads/main": ("findings/000",)}


def test_index_of_others_is_as_ours(forge: Forge, session: Session) -> None:
    page = forge.rows(forge.rows(forge.root[b"findings"].id.hex())[0][2].hex())
    forge.pushed((FILE, b"notes.md", forge.blob(b"notes")))

    assert len(page) == 2
    assert _inspected(forge, session).lying == {}


def test_index_that_lies_on_two_branches_is_named_for_both(forge: Forge, session: Session) -> None:
    forge.page(MEMORY.format(id="FIND-0009", text="a text"), index="")
    forge.branch(git(forge.place, "rev-parse", "refs/heads/main").strip(), "refs/heads/aside")

    page = ("findings/000",)
    assert _inspected(forge, session).lying == {"refs/heads/aside": page, "refs/heads/main": page}


def test_program_that_a_person_made_of_a_file_is_taken(forge: Forge, session: Session) -> None:
    forge.pushed((b"100755", b"notes.md", forge.blob(b"notes")))

    assert _inspected(forge, session).commits == 1


@pytest.mark.parametrize(
    "name", ["Überblick.md", "notes of 2026 (draft).txt", "a+b=c.md", "CONTRIBUTING", "日本.md"]
)
def test_notes_of_a_person_are_taken(name: str, forge: Forge, session: Session) -> None:
    forge.pushed((FOLDER, b"notes", forge.tree([(FILE, name.encode(), forge.blob(b"x"))])))

    assert _inspected(forge, session).commits == 1


@pytest.mark.parametrize("text", ["a: [", "[1, 2]", b"a: \xff", None], ids=ascii)
def test_tombstones_of_a_tag_are_looked_at(forge: Forge, session: Session, text: str | bytes | None) -> None:  # fmt: skip
    row = (FOLDER, b"tombstones.yaml", forge.tree([(FILE, b"x", forge.blob("x"))]))
    if text is not None:
        row = (FILE, b"tombstones.yaml", forge.blob(text))
    forge.branch(forge.commit(forge.top(row)), "refs/tags/odd")

    with pytest.raises(UntrustedError, match=r"^tag 'odd': tombstones\.yaml"):
        _inspected(forge, session)


def test_tombstones_of_all_branches_are_read(forge: Forge, session: Session) -> None:
    line = '- {"id":"%s","generation":1,"purged":false,"rule":1}\n'
    forge.file(b"tombstones.yaml", line % "DEC-0007")
    other = forge.top((FILE, b"tombstones.yaml", forge.blob(line % "DEC-0009")))
    forge.branch(forge.commit(other), "refs/heads/other")

    found = _inspected(forge, session).tombstones

    assert [each.text for each in found.items] == ["DEC-0007", "DEC-0009"]


def test_signed_commit_is_taken(forge: Forge, session: Session) -> None:
    more = b"gpgsig -----BEGIN PGP SIGNATURE-----\n \n abc=\n -----END PGP SIGNATURE-----\n"
    forge.branch(forge.commit(forge.top(), more=more))

    assert _inspected(forge, session).commits == 1


@pytest.mark.parametrize(
    ("bounds", "what"),
    [
        (Bounds(commits=2), "commits"),
        (Bounds(trees=2), "too many"),
        (Bounds(files=2), "too many"),
        (Bounds(total_bytes=1000), "too many"),
        (Bounds(references=0), "references"),
    ],
    ids=["commits", "folders", "files", "bytes", "references"],
)
def test_more_than_the_bounds_is_refused(bounds: Bounds, what: str, forge: Forge, session: Session) -> None:  # fmt: skip
    tip = forge.head
    for number in range(4):
        notes = forge.tree([(FILE, b"x.md", forge.blob(b"%d" % number))])
        tip = forge.commit(forge.top((FOLDER, b"notes", notes)), tip)
    forge.branch(tip)

    with pytest.raises(UntrustedError, match=what):
        _inspected(forge, session, bounds)


def test_what_is_known_is_not_looked_at_again(forge: Forge, session: Session) -> None:
    found = _inspected(forge, session, Bounds(commits=0, files=0, references=10))

    assert found.commits == 0
    assert found.uid == session.metadata.uid
