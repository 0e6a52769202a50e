"""Replicas that merge the same make the same commit, and come to rest.

The sentence: a merge that a sync makes is a function of its parents; however many
replicas sync with however many remotes, in fixed order, once nobody writes any more the
heads become one, and no sync makes another commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from smp_git import Session
from smp_git.git.references import merge_bases
from smp_git.model.memory import CommitId, contested_in
from smp_git.read.replica import Identity
from smp_git.read.snapshot import Reader
from smp_git.write.merge.join import join
from smp_git.write.writer import Writer
from tests.conftest import Clock
from tests.merging.histories import History, changed, memory
from tests.support import git
from tests.sync.support import Machine, head, sound


def _replicas(folder: Path, count: int, remotes: int) -> list[Session]:
    """Return replicas of one session, each with every remote, each with a clock of its own."""
    hubs = [folder / f"hub{number}.git" for number in range(remotes)]
    machines = [Machine(folder, f"machine{number}") for number in range(count)]
    first = machines[0].begin(hubs[0])
    sessions = [first, *(machine.clone(hubs[0]) for machine in machines[1:])]
    for session in sessions:
        for number, hub in enumerate(hubs[1:], 1):
            session.add_remote(f"hub{number}", hub, create=not hub.exists())
    for number, machine in enumerate(machines):
        machine.clock.now += timedelta(minutes=7 * number)
    return sessions


def _round(sessions: list[Session]) -> None:
    for session in sessions:
        for remote in session.remotes:
            session.sync(remote)


def _commits(sessions: list[Session]) -> int:
    return len({line for each in sessions for line in git(each.path, "rev-list", "--all").split()})


@pytest.mark.parametrize(("count", "remotes"), [(2, 2), (3, 2), (4, 2), (4, 3)])
def test_idle_syncs_in_fixed_order_come_to_rest_at_one_head(
    tmp_path: Path, count: int, remotes: int
) -> None:
    sessions = _replicas(tmp_path, count, remotes)
    for number, session in enumerate(sessions):
        session.add("finding", f"found {number}")
        session.edit("DEC-1", rationale=f"because {number}")
        with session.branch(f"idea{number % 2}") as aside:
            aside.add("finding", f"aside {number}")
    # Each with a remote of its own first, so that all histories part.
    for number, session in enumerate(sessions):
        session.sync(list(session.remotes)[number % remotes])

    for _ in range(3):
        _round(sessions)
    before = _commits(sessions)
    for _ in range(3):
        _round(sessions)

    assert _commits(sessions) == before
    for branch in ("main", "idea0", "idea1"):
        assert len({git(each.path, "rev-parse", branch) for each in sessions}) == 1
        hubs = {head(tmp_path / f"hub{number}.git", branch) for number in range(remotes)}
        assert hubs == {git(sessions[0].path, "rev-parse", branch).strip()}
    for session in sessions:
        sound(session)


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with Machine(tmp_path, "one").store.create_session("shop") as session:
        yield History(session)


def _both_ways(history: History, left: CommitId, right: CommitId) -> set[CommitId]:
    """Merge each into the other, as two replicas would, with other names and clocks."""
    made = set()
    for tag, ours, theirs in (("left", left, right), ("right", right, left)):
        clock = Clock()
        clock.now += timedelta(days=len(tag))
        reader = Reader(history.reader.path)
        reader.local.identify(reader.path, Identity(f"{tag[0]}aaa", creator=False), reader.path)
        ref = f"refs/heads/{tag}"
        reader.repository.point({ref: ours})
        with (writer := Writer(reader, clock)).holding("merging"):
            result = join(writer, ref, theirs, source=f"branch of {tag}")
        assert git(reader.path, "rev-parse", ref).strip() == result.commit
        made.add(result.commit)
        reader.close()
    return made


def test_two_replicas_that_merge_the_same_make_the_same_commit(history: History) -> None:
    base = history.put(history.root, memory("DEC-0001", "Use Redis"))
    old = history.get(base, "DEC-0001")
    left = history.put(base, changed(old, 3, impact="low"), memory("FIND-0001", "left"), tag="aaaa")
    right = history.put(base, changed(old, 3, impact="high"), memory("FIND-0001-bbbb", "right"), tag="bbbb")  # fmt: skip

    (made,) = _both_ways(history, left, right)

    commit = history.repository.commit(made)
    assert commit.parents == tuple(sorted((left, right)))
    assert commit.time == max(history.repository.commit(each).time for each in (left, right))
    assert (commit.author, commit.committer_email) == ("smp-git", "smp-git@smp")
    assert commit.message == "merge\n\nAgent: smp-git\n"
    (lost,) = contested_in(history.get(made, "DEC-0001"))
    assert lost["value"] == "low"


def test_merges_with_several_bases_and_hand_edits_are_the_same_on_either_side(
    history: History,
) -> None:
    base = history.put(history.root, memory("DEC-0001", "Use Redis"))
    old, path = history.get(base, "DEC-0001"), "decisions/000/DEC-0001.yaml"
    left = history.put(base, changed(old, 3, impact="low"), tag="aaaa")
    file = history.files(base)[path].replace(b"kind:", b"# by hand\nkind:", 1)
    right = history.commit(base, {path: file + b"note: mine\n", "notes.txt": b"right\n"}, tag="")
    left, right = history.merged(left, right, tag="aaaa"), history.merged(right, left, tag="bbbb")
    left = history.commit(left, {"notes.txt": b"left\n"}, tag="")
    now = history.get(right, "DEC-0001")
    right = history.put(right, changed(now, 9, impact="high"), tag="bbbb")
    left = history.put(left, changed(now, 8, impact="medium"), tag="aaaa")
    assert len(merge_bases(history.repository, left, right)) == 2

    assert len(_both_ways(history, left, right)) == 1


def test_a_replica_with_nothing_but_merges_of_its_own_takes_those_of_another(
    history: History,
) -> None:
    tips = [history.put(history.root, memory(f"FIND-000{number}")) for number in range(1, 4)]

    def merged(*order: int) -> CommitId:
        made = tips[order[0]]
        for number in order[1:]:
            made = _both_ways(history, made, tips[number]).pop()
        return made

    one, two = merged(0, 1, 2), merged(2, 1, 0)
    assert one != two

    assert len(_both_ways(history, one, two)) == 2, "one gives way, the other merges"
    with_more = history.put(two, memory("FIND-0009"))
    assert len(_both_ways(history, one, with_more)) == 1


def test_a_past_moment_is_found_on_either_side_of_a_merge(tmp_path: Path) -> None:
    one, two = _replicas(tmp_path, 2, 1)
    one.add("finding", "early")
    two.add("finding", "late")
    two.sync()
    one.sync()
    two.sync()
    late, early = [each for each in one.log() if each.touches][:2]

    for session in (one, two):
        assert session.log()[0].agent == "smp-git"
        found = {each.content for each in session.memories("finding", at=late.at)}
        assert found == {"early", "late"}
        (then,) = session.memories("finding", at=early.at)
        assert then.content == "early"
        for each in (late, early):
            blamed = session.bisect(
                lambda view: len(view.memories("finding")) < 2, good=each.commit
            )
            assert blamed.commit == session.head
