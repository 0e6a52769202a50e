"""Two machines that write and sync at once, and a person who moves the remote in between.

The sentence: nothing acknowledged is lost, and no forced push replaces work that it has
not seen. Before every push of a machine a real `git push` of somebody else may land: the
`git` that the machine finds on its path does that first, and then what it was asked.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smp_git import Session
from tests.support import ROOT, git, python
from tests.sync.support import Machine, sound, tree

SYNCS = 100

# Writes, and deletes now and then so that history is replaced, and syncs after each.
_WORK = """
import json, sys
from pathlib import Path
from smp_git import Store
from smp_git.model.errors import ConflictError, RemoteUnreachableError
root, name, syncs = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
kept, gone, given_up = {}, [], 0
with Store.open(root / name).session("shop") as session:
    for number in range(syncs):
        text = f"mark {name} {number} end"
        memory = session.add("finding", text, agent=name)
        kept[memory.id] = text
        if number % 20 == 7:
            one = next(iter(kept))
            session.delete(one)
            gone.append(kept.pop(one))
        try:
            session.sync()
        except ConflictError:
            given_up += 1
print(json.dumps({"kept": list(kept.values()), "gone": gone, "given_up": given_up}))
"""

# One of several processes in one session: everything at once, deletions while others push.
_CROWD = """
import json, random, sys
from pathlib import Path
from smp_git import Store
from smp_git.model.errors import ConflictError
root, name, seed, turns = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
chance = random.Random(seed)
kept, gone, given_up = {}, [], 0
with Store.open(root / name).session("shop") as session:
    for number in range(turns):
        text = f"mark {name} {seed} {number} end"
        if chance.random() < 0.5:
            kept[session.add("finding", text, agent=name).id] = text
        else:
            with session.transaction(name) as batch:
                new = batch.add("finding", text).id
                if kept and chance.random() < 0.3:
                    one = next(iter(kept))
                    session.delete(one)
                    gone.append(kept.pop(one))
            kept[new] = text
        if chance.random() < 0.3:
            one = chance.choice(list(kept))
            session.delete(one)
            gone.append(kept.pop(one))
        try:
            chance.choice([session.sync, session.sync, session.fetch, session.push])()
        except ConflictError:
            given_up += 1
print(json.dumps({"kept": list(kept.values()), "gone": gone, "given_up": given_up}))
"""

# A person's clone: each call adds one memory file by hand and pushes it, unless it is refused.
_MOVER = """#!/bin/sh
case " $* " in *" push "*) ;; *) exec {git} "$@";; esac
n=$(od -An -N2 -tu2 /dev/urandom | tr -d " ")
if [ $((n % 3)) -eq 0 ]; then
(
    unset GIT_DIR GIT_WORK_TREE
    export HOME={folder} GIT_CONFIG_GLOBAL=/dev/null
    flock 9
    cd {folder}/person || exit
    {git} fetch -q && {git} reset -q --hard origin/main || exit
    new=$(($(cat {folder}/number) + 1))
    id=$(printf 'DEC-%04d-mvr{letter}' $new)
    page=decisions/$(printf '%03d' $((new / 100)))
    echo $new > {folder}/number
    mkdir -p $page
    sed "s/DEC-0001/$id/; s/Use PostgreSQL/mark mover $id end/" decisions/000/DEC-0001.yaml > $page/$id.yaml
    {git} add -A
    {git} -c user.name=p -c user.email=p@e commit -qm "by hand" || exit
    {git} push -q origin HEAD:main 2>/dev/null && echo "mark mover $id end" >> {folder}/moved
) 9>{folder}/lock >/dev/null 2>&1 </dev/null
fi
exec {git} "$@"
"""


def _mover(folder: Path, hub: Path, letter: str) -> dict[str, str]:
    """Return an environment whose `git` lets a person push first, one time in three."""
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip
    folder.mkdir()
    git(folder, "clone", "-q", str(hub), "person")
    (folder / "number").write_text("0\n")
    (folder / "moved").touch()
    (folder / "bin").mkdir()
    script = folder / "bin" / "git"
    script.write_text(_MOVER.format(git=real, folder=folder, letter=letter))
    script.chmod(0o755)
    return {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


@pytest.mark.slow
def test_nothing_is_lost_while_two_sync_and_the_remote_moves(tmp_path: Path) -> None:
    machines, hub = _two(tmp_path)
    children = [
        subprocess.Popen(
            [sys.executable, "-c", _WORK, str(tmp_path), name, str(SYNCS)],
            env=_mover(tmp_path / f"mover-{name}", hub, letter),
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )
        for name, letter in (("one", "a"), ("two", "b"))
    ]  # fmt: skip
    told, sessions = _settled(children, machines)
    moved = [line for name in ("one", "two") for line in (tmp_path / f"mover-{name}/moved").read_text().splitlines()]  # fmt: skip
    print(f"{2 * SYNCS} syncs, {len(moved)} moves in between, gave up {sum(t['given_up'] for t in told)}")  # fmt: skip
    assert moved
    _assert_kept(told, sessions, moved)


@pytest.mark.slow
def test_deletions_while_others_of_the_session_sync(tmp_path: Path) -> None:
    machines, _ = _two(tmp_path)
    children = [
        subprocess.Popen(
            [sys.executable, "-c", _CROWD, str(tmp_path), name, str(seed), "25"],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )
        for name, seed in (("one", 1), ("one", 2), ("two", 3), ("two", 4))
    ]  # fmt: skip
    told, sessions = _settled(children, machines)
    print(f"gave up {sum(t['given_up'] for t in told)} of 100 exchanges")
    _assert_kept(told, sessions, [])


# Deletes a memory when asked to; waits for a while just before any reference moves.
_HESITATES = """
import sys, time
from pathlib import Path
from smp_git import Store
from smp_git.remove.history.publish import Publisher
folder = Path(sys.argv[1])
publish = Publisher.publish
def slowly(self):
    (folder / "hesitates").touch()
    time.sleep(1.5)
    return publish(self)
Publisher.publish = slowly
with Store.open(folder / "one").session("shop") as session:
    while not (folder / "asked").exists():
        time.sleep(0.01)
    session.delete("DEC-0001")
"""

# When it has fetched all objects, it asks for the deletion, and goes on when that is about to
# publish.
_ASKS = """#!/bin/sh
{git} "$@"; status=$?
case " $* " in *" fetch "*)
    {git} "$1" repack -adq
    touch {folder}/asked
    while [ ! -e {folder}/hesitates ]; do sleep 0.01; done;;
esac
exit $status
"""


def test_sync_beside_a_deletion_that_is_about_to_publish(tmp_path: Path) -> None:
    """A memory is not taken for gone while the references still lead to it."""
    machines, _ = _two(tmp_path)
    with machines[1].store.session("shop") as there:
        there.add("finding", "No MFA", agent="veritas")
        there.sync()
    slow = [sys.executable, "-c", _HESITATES, str(tmp_path)]
    with subprocess.Popen(slow, env={**os.environ, "PYTHONPATH": str(ROOT)}) as child:
        done = _sync_with(_ASKS.format(git=shutil.which("git"), folder=tmp_path), tmp_path)
        assert done.returncode == 0, done.stderr
        assert child.wait() == 0
    with machines[0].store.session("shop") as here:
        assert [memory.content for memory in here.memories()] == ["No MFA"]
        here.sync()
        sound(here)


# A person's plain fetch into the session, while the product fetches.
_FETCHES_TOO = """#!/bin/sh
{git} "$@"; status=$?
case " $* " in *" fetch "*) {git} -C {session} fetch -q origin;; esac
exit $status
"""


def test_plain_fetch_beside_a_sync_does_not_vouch_for_what_it_brings(tmp_path: Path) -> None:
    machines, hub = _two(tmp_path)
    with machines[0].store.session("shop") as here:
        gone = here.add("finding", "Sentinel text").id
        here.sync()
        git(tmp_path, "clone", "-q", str(hub), "person")
        here.delete(gone)
        here.sync()
    person = tmp_path / "person"
    author = ("-c", "user.name=p", "-c", "user.email=p@e")
    git(person, *author, "commit", "-q", "--allow-empty", "-m", "by hand")
    git(person, "push", "-q", "origin", "HEAD:refs/heads/feature")
    script = _FETCHES_TOO.format(git=shutil.which("git"), session=tmp_path / "one/active/shop")
    done = _sync_with(script, tmp_path)
    assert done.returncode == 0, done.stderr
    for place in (tmp_path / "one/active/shop", hub):
        assert "by hand" in git(place, "log", "--all")
        assert "Sentinel" not in git(place, "log", "-p", "--all")


# Syncs, and lets another process delete a memory between the plan and what follows it.
_LATE = """
import subprocess, sys
from smp_git import Store
from smp_git.sync import inbound
apart = inbound.apart
def later(*args):
    inbound.apart = apart
    # All that was fetched is there then, whatever the deletion takes away, and it says so.
    subprocess.run(["git", "--git-dir", str(args[2].git), "repack", "-adq"], check=True)
    words = [sys.executable, "-m", "smp_git", "--root", sys.argv[1], "-s", "shop", "delete", sys.argv[2], "--yes"]
    subprocess.run(words, capture_output=True)
    return apart(*args)
inbound.apart = later
with Store.open(sys.argv[1]).session("shop") as session:
    session.sync()
"""


def test_deletion_between_the_plan_of_another_one_and_its_work(tmp_path: Path) -> None:
    machines, hub = _two(tmp_path)
    with machines[0].store.session("shop") as here, machines[1].store.session("shop") as there:
        gone, late = (here.add("finding", f"Sentinel text {one}").id for one in "ab")
        here.sync()
        there.sync()
        there.delete(gone)
        there.add("learning", "Rotate keys")
        there.sync()
    python(_LATE, tmp_path / "one", late)
    with machines[0].store.session("shop") as here:
        here.sync()
        assert {memory.content for memory in here.memories()} == {"Use PostgreSQL", "Rotate keys"}
        sound(here)
    assert "Sentinel" not in git(hub, "log", "-p", "--all")


def _sync_with(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Sync the first machine, with another `git` on its path."""
    place = folder / "bin" / "git"
    place.parent.mkdir()
    place.write_text(script)
    place.chmod(0o755)
    words = f"--root {folder / 'one'} --session shop sync".split()
    path = f"{place.parent}:{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", "smp_git", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": path},
        check=False,
        capture_output=True,
        text=True,
    )


Told = dict[str, Any]


def _two(folder: Path) -> tuple[list[Machine], Path]:
    """Return two machines with one session, and its remote."""
    machines, hub = [Machine(folder, name) for name in ("one", "two")], folder / "hub.git"
    machines[0].begin(hub).close()
    machines[1].clone(hub).close()
    return machines, hub


def _settled(children: list[subprocess.Popen[str]], machines: list[Machine]) -> tuple[list[Told], list[Session]]:  # fmt: skip
    """Wait for all; return what they told, and the sessions after everybody has synced twice."""
    told = [json.loads(child.communicate()[0]) for child in children]
    assert not any(child.returncode for child in children)
    sessions = [machine.store.session("shop") for machine in machines]
    for session in sessions * 2:
        session.sync()
    return told, sessions


def _assert_kept(told: list[Told], sessions: list[Session], more: list[str]) -> None:
    """Everything acknowledged is in every session, nothing deleted is, and they are the same."""
    kept = {text for each in told for text in each["kept"]} | set(more)
    gone = {text for each in told for text in each["gone"]}
    for session in sessions:
        found = {memory.content for memory in session.memories()}
        assert kept <= found
        assert not gone & found
    assert tree(sessions[0]) == tree(sessions[1])
    for session in sessions:
        sound(session)
        session.close()
