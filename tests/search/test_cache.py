"""What happens to the cache file never changes an answer."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from smp_git import Store
from smp_git.ask.text.batches import Document
from smp_git.ask.text.cache import Followed, SearchCache
from tests.search.support import a_cache, a_document, follow, found

PAGES = {
    f"conversation/{page:03}": tuple(
        a_document(number, f"message {number} about topic{number % 7} sentinel{number}")
        for number in range(10 * page, 10 * page + 10)
    )
    for page in range(4)
}
QUESTION = "message about topic3"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of a cache file that holds PAGES."""
    file = tmp_path / "cache"
    follow(SearchCache(file), PAGES)
    return file


def answers(cache: SearchCache) -> list[int]:
    follow(cache, PAGES)
    return found(cache, QUESTION)


EXPECTED = answers(SearchCache(None))


def test_a_second_process_loads_nothing(path: Path) -> None:
    assert follow(SearchCache(path), PAGES) == []


def test_only_changed_pages_are_loaded(path: Path) -> None:
    cache = SearchCache(path)
    changed = (a_document(5, "new words"),)

    assert follow(cache, PAGES | {"conversation/000": changed}) == ["conversation/000"]
    assert found(cache, '"new words"') == [5]


def test_vanished_pages_are_not_found(path: Path) -> None:
    cache = SearchCache(path)
    follow(cache, {"conversation/000": PAGES["conversation/000"]})

    assert found(cache, "sentinel11") == []


def test_going_back_to_an_earlier_state_loads_nothing(path: Path) -> None:
    cache = SearchCache(path)
    follow(cache, PAGES | {"conversation/000": (a_document(5, "new words"),)})

    assert follow(SearchCache(path), PAGES) == []


def test_old_batches_do_not_pile_up(path: Path) -> None:
    cache = SearchCache(path)
    for number in range(300):
        follow(cache, PAGES | {"conversation/000": (a_document(5, f"edit {number}"),)})

    count = sqlite3.connect(path).execute("SELECT count(*) FROM batch").fetchone()
    assert count == (2 + 16,)


def test_the_file_is_private(path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600


def garbage(path: Path) -> None:
    path.write_bytes(b"not a database" * 1_000)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def deleted(path: Path) -> None:
    path.unlink()


def another_version(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 999")


def another_schema(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE part")


def lying(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE part SET body = (SELECT body FROM part LIMIT 1)")


def read_only(path: Path) -> None:
    path.chmod(0o400)
    path.parent.chmod(0o500)


def robbed(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM part WHERE rowid % 3 = 0")


def half_written(path: Path) -> None:
    """Leave what a writer leaves that dies between two pages."""
    before = path.read_bytes()
    follow(SearchCache(path), PAGES | {"conversation/009": (a_document(95, "more " * 9_000),)})
    after = path.read_bytes()
    path.write_bytes(after[: len(before)] + bytes(len(after) - len(before)))


DAMAGES = [
    robbed,
    half_written,
    garbage,
    truncated,
    emptied,
    deleted,
    another_version,
    another_schema,
    lying,
    read_only,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_changes_no_answer_and_is_repaired(
    path: Path, damage: Callable[[Path], None]
) -> None:
    damage(path)

    assert answers(SearchCache(path)) == EXPECTED
    path.parent.chmod(0o700)
    assert follow(SearchCache(path), PAGES) == []


@pytest.mark.parametrize("damage", [garbage, truncated, another_version, another_schema])
def test_damage_is_told_in_a_sentence(path: Path, damage: Callable[[Path], None]) -> None:
    damage(path)
    cache = SearchCache(path)
    follow(cache, PAGES)

    assert str(path) in cache.problems[0]


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_changes_no_answer(path: Path, seed: int) -> None:
    chance = random.Random(seed)  # repeatable damage, no secret
    whole = bytearray(path.read_bytes())
    start = chance.randrange(len(whole))
    end = min(len(whole), start + chance.choice([1, 16, 4096]))
    whole[start:end] = chance.randbytes(end - start)
    path.write_bytes(whole)

    assert answers(SearchCache(path)) == EXPECTED


WITHOUT_SQLITE = """
import sys
sys.modules["_sqlite3"] = None
from smp_git import Store
from smp_git.__main__ import main
with Store.open(sys.argv[1]).session("shop") as session:
    found = session.query("slow login")
    print([hit.id for hit in found], *found.problems)
sys.argv[1:] = ["--root", sys.argv[1], "-s", "shop", "check"]
main()
"""


def test_a_python_without_sqlite3_answers_and_says_so(store: Store) -> None:
    with store.create_session("shop") as session:
        session.add("finding", "the login is slow")
    command = [sys.executable, "-c", WITHOUT_SQLITE, str(store.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.startswith("['FIND-0001'] the search cache ")
    assert "this Python has no sqlite3" in done.stdout
    assert "this Python has no sqlite3" in done.stderr


def test_a_folder_in_its_place_is_bypassed(tmp_path: Path) -> None:
    cache = SearchCache(tmp_path)

    assert answers(cache) == EXPECTED
    assert cache.problems


def test_a_link_in_its_place_leaves_the_rights_of_what_it_names(tmp_path: Path) -> None:
    named, cache = tmp_path / "named", tmp_path / "cache"
    named.touch()
    named.chmod(0o644)
    cache.symlink_to(named)

    assert answers(SearchCache(cache)) == EXPECTED
    assert named.stat().st_mode & 0o777 == 0o644


def test_a_missing_folder_is_bypassed(tmp_path: Path) -> None:
    assert answers(SearchCache(tmp_path / "missing" / "cache")) == EXPECTED


def test_a_locked_file_is_read_as_it_is_and_waited_for_less_than_200_ms(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    cache = SearchCache(path)
    monkeypatch.setattr(_Patient, "waits", [])
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=_Patient))

    assert follow(cache, PAGES) == []
    assert found(cache, QUESTION) == EXPECTED
    assert 0 < sum(_Patient.waits) < 0.2
    assert "locked" in cache.problems[0]
    holder.close()


class _Patient(sqlite3.Connection):
    """Notes how long it was ready to wait, each time that it waited in vain."""

    waits: ClassVar[list[float]] = []

    def __init__(self, database: Path | str, timeout: float = 5.0, **more: Any) -> None:
        super().__init__(database, timeout, **more)
        self._timeout = timeout

    def _noted(self, act: Callable[[], sqlite3.Cursor]) -> sqlite3.Cursor:
        try:
            return act()
        except sqlite3.OperationalError:
            self.waits.append(self._timeout)
            raise

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        return self._noted(partial(super().execute, *arguments))

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        return self._noted(partial(super().executemany, *arguments))

    def executescript(self, *arguments: Any) -> sqlite3.Cursor:
        return self._noted(partial(super().executescript, *arguments))


def test_what_could_not_be_saved_is_saved_by_the_next_change(path: Path) -> None:
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    cache = SearchCache(path)
    first = PAGES | {"conversation/004": (a_document(50, "five"),)}
    follow(cache, first)
    holder.close()
    follow(cache, first | {"conversation/005": (a_document(60, "six"),)})

    assert follow(SearchCache(path), first) == []


def test_two_caches_at_different_states_both_answer_right(path: Path) -> None:
    one, two = SearchCache(path), SearchCache(path)
    fewer = {"conversation/000": PAGES["conversation/000"]}
    for _ in range(3):
        follow(one, PAGES)
        follow(two, fewer)

    assert found(one, '"sentinel39"') == [39]
    assert found(two, "sentinel39") == []


def test_processes_that_write_at_once_all_answer_right(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.search.test_cache import *;"
        "c = SearchCache(Path(sys.argv[1])); assert answers(c) == EXPECTED;"
        "[follow(c, PAGES | {'x': (a_document(99, f'{n} {sys.argv[2]}'),)}) for n in range(30)];"
        "assert answers(c) == EXPECTED"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "cache"), str(n)])
        for n in range(4)
    ]

    assert [child.wait() for child in children] == [0, 0, 0, 0]


def unreadable(key: str) -> Iterable[Document]:
    raise ValueError(f"{key} is unreadable")


def test_a_failing_load_changes_nothing() -> None:
    cache = a_cache("redis")
    with pytest.raises(ValueError, match="unreadable"):
        cache.follow(Followed({"conversation/001": "x"}, unreadable))

    assert found(cache, "redis") == [0]


def test_following_unchanged_pages_does_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = SearchCache(path)
    follow(cache, PAGES)
    index = cache.index
    monkeypatch.delattr(sqlite3, "connect")

    assert follow(cache, dict(PAGES)) == []
    assert cache.index is index
