"""Three replicas, two remotes and a person's plain clone: whatever is done, all end up alike.

The sentence: after everybody has synced twice, all replicas have the same tree, nothing
acknowledged is lost, nothing deleted is anywhere in any of them, and Git finds them sound.
After they have synced three times, nothing redacted is anywhere, whatever was restored.

Everything written holds a marker, a word that is used once. A marker may be missing at
the end only if somebody wrote something else in its place, knowing it, or deleted it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from smp_git import Redaction, Session, Store
from smp_git.model.errors import (
    AlreadyExistsError,
    ConflictError,
    MemoryNotFoundError,
    RefusedError,
)
from smp_git.model.ids import parse_path
from smp_git.remove.history.plan import effective
from tests import independent_scan
from tests.conftest import Clock
from tests.support import git, untyped

MARKER = re.compile(rb"\bmk\d+q\b")
REPLICAS = st.integers(0, 2)
REMOTES = st.sampled_from(("hub", "lag"))
PLACES = st.sampled_from(("text", "rationale", "impact"))
KINDS = st.sampled_from(("decision", "decision", "finding", "learning"))


class Replica:
    """One machine: its store, its session, and how it is opened."""

    def __init__(self, folder: Path, name: str) -> None:
        self.store = Store.init(folder / name, clock=Clock())
        keys = folder / f"{name}-keys"
        (self.store.path / "config.yaml").write_text(
            f"format: 1\ndurability: relaxed\nredaction: off\nkey_dir: {keys}\n"
        )
        self.store = Store.open(self.store.path, clock=Clock())
        self.session: Session

    def markers(self) -> set[bytes]:
        """Return the markers in the memories of main."""
        return {mark for _, data in self.files() for mark in MARKER.findall(data)}

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the memories of main as Git has them."""
        listed = git(self.session.path, "ls-tree", "-r", "--name-only", "main").splitlines()
        for path in listed:
            if parse_path(path) is not None:
                done = subprocess.run(
                    ["git", "show", f"main:{path}"], cwd=self.session.path, capture_output=True, check=True
                )  # fmt: skip
                yield path, done.stdout


class Replicas(RuleBasedStateMachine):
    """The machine: what each replica did, and what may therefore be missing at the end."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="smp-converge-"))
        self.count = 0
        # Markers that may be missing, that must be missing, and whose they are.
        self.excused: set[bytes] = set()
        self.doomed: set[bytes] = set()
        self.redacted: set[bytes] = set()
        self.owner: dict[bytes, str] = {}
        self.written: set[bytes] = set()
        self.returned: set[str] = set()
        self.replicas = [Replica(self.folder, name) for name in ("one", "two", "three")]
        first = self.replicas[0]
        first.session = first.store.create_session("shop", user="ada")
        for name in ("hub", "lag"):
            first.session.add_remote(name, self.folder / f"{name}.git", create=True)
        self.on(first, lambda s: s.add("decision", self.marker("DEC-0001"), agent="one"))
        first.session.sync("hub")
        first.session.sync("lag")
        for replica in self.replicas[1:]:
            replica.session = replica.store.clone(str(self.folder / "hub.git"))
            replica.session.remove_remote("origin")
            for name in ("hub", "lag"):
                replica.session.add_remote(name, self.folder / f"{name}.git")
        git(self.folder, "clone", "-q", "hub.git", "person")
        git(self.folder / "person", "config", "user.name", "a person")
        git(self.folder / "person", "config", "user.email", "person@example.com")
        self.unpushed: set[bytes] = set()
        self.replaced_by_person: set[bytes] = set()

    # Markers

    def marker(self, owner: str | None = None) -> str:
        self.count += 1
        text = f"mk{self.count}q"
        if owner is not None:
            self.owner[text.encode()] = owner
        return text

    def on(self, replica: Replica, work: object) -> None:
        """Do something on a replica; what it takes away was taken away on purpose."""
        before = replica.markers()
        try:
            work(replica.session)  # type: ignore[operator]
        except (RefusedError, MemoryNotFoundError, ConflictError, AlreadyExistsError):
            return
        finally:
            after = replica.markers()
            self.written |= after
            self.excused |= before - after

    def chosen(self, replica: Replica, pick: int) -> str | None:
        ids = sorted(memory.id for memory in replica.session.memories())
        return ids[pick % len(ids)] if ids else None

    # What agents do

    @rule(who=REPLICAS, kind=KINDS)
    def add(self, who: int, kind: str) -> None:
        text = self.marker()
        made: list[str] = []
        replica = self.replicas[who]
        self.on(replica, lambda s: made.append(s.add(kind, f"It is {text}", agent="agent").id))
        self.owner[text.encode()] = made[0]

    @rule(who=REPLICAS, pick=st.integers(0, 50), place=PLACES)
    def edit(self, who: int, pick: int, place: str) -> None:
        replica = self.replicas[who]
        name = self.chosen(replica, pick)
        if name is not None and not name.startswith("state-"):
            changes = {place: f"now {self.marker(name)}"}
            self.on(replica, lambda s: s.edit(name, agent="agent", **changes))

    @rule(who=REPLICAS, pick=st.integers(0, 50), purge=st.booleans())
    def delete(self, who: int, pick: int, purge: bool) -> None:
        replica = self.replicas[who]
        name = self.chosen(replica, pick)
        if name is not None:
            self.on(replica, lambda s: s.delete(name, purge=purge))
            self.doom(name, purge=purge)

    def doom(self, name: str, *, purge: bool) -> None:
        if purge or name not in self.returned:
            self.doomed |= {mark for mark, owner in self.owner.items() if owner == name}

    @rule(who=REPLICAS, pick=st.integers(0, 50))
    def restore(self, who: int, pick: int) -> None:
        replica = self.replicas[who]
        there = sorted(item.id for item in replica.session.trash())
        if not there:
            return
        name = there[pick % len(there)]
        self.returned.add(name)
        # It may hold again what was deleted.
        self.doomed -= {mark for mark, owner in self.owner.items() if owner == name}
        self.on(replica, lambda s: s.restore(name))

    @rule(who=REPLICAS, pick=st.integers(0, 50))
    def redact(self, who: int, pick: int) -> None:
        replica = self.replicas[who]
        marks = sorted(replica.markers())
        if not marks:
            return
        mark = marks[pick % len(marks)]
        done: list[Redaction] = []
        self.on(replica, lambda s: done.append(s.redact(mark.decode())))
        if done and done[0].receipt is not None and not done[0].left:
            self.redacted.add(mark)
            if self.owner.get(mark) not in self.returned:
                self.doomed.add(mark)

    @rule(who=REPLICAS)
    def undo(self, who: int) -> None:
        self.on(self.replicas[who], lambda s: s.undo(agent="agent"))

    @rule(who=REPLICAS, kind=KINDS)
    def branch_and_merge(self, who: int, kind: str) -> None:
        replica = self.replicas[who]
        name = f"idea-{who}-{self.count}"
        text, more = self.marker(), self.marker()
        with replica.session.branch(name) as branch:
            self.owner[text.encode()] = branch.add(untyped(kind), f"It is {text}", agent="agent").id
        self.owner[more.encode()] = replica.session.add(
            untyped(kind), f"It is {more}", agent="agent"
        ).id
        self.on(replica, lambda s: s.merge(name))
        self.written |= {text.encode(), more.encode()}

    @rule(who=REPLICAS)
    def state(self, who: int) -> None:
        text = self.marker("state-agent")
        self.on(self.replicas[who], lambda s: s.set_state("agent", {"current_context": text}))

    @rule(who=REPLICAS, name=st.integers(0, 3))
    def tag(self, who: int, name: int) -> None:
        self.on(self.replicas[who], lambda s: s.tag(f"t{name}"))

    @rule(who=REPLICAS, pick=st.integers(0, 50), more=st.integers(0, 50))
    def transaction(self, who: int, pick: int, more: int) -> None:
        replica = self.replicas[who]
        found = [self.chosen(replica, each) for each in (pick, more)]
        names = [each for each in found if each and not each.startswith("state-")]
        texts = {each: self.marker(each) for each in names}

        def work(session: Session) -> None:
            with session.transaction(agent="agent") as batch:
                for name, text in texts.items():
                    batch.edit(name, impact=f"both {text}", tags=[f"tag-{more}"])

        self.on(replica, work)

    @rule(who=REPLICAS)
    def purge_trash(self, who: int) -> None:
        replica = self.replicas[who]
        there = [item.id for item in replica.session.trash()]
        if there:
            self.on(replica, lambda s: s.purge(there))

    @rule(who=REPLICAS, pick=st.integers(0, 50), theirs=st.booleans())
    def settle_conflict(self, who: int, pick: int, theirs: bool) -> None:
        replica = self.replicas[who]
        found = [each for each in replica.session.conflicts() if not each.id.startswith("state-")]
        if found:
            one = found[pick % len(found)]
            take = one.replica if theirs and not one.in_history else None
            self.on(replica, lambda s: s.resolve_conflict(one.id, one.field, take=take, agent="agent"))  # fmt: skip

    @rule(who=REPLICAS, hours=st.integers(-3, 3))
    def clock_goes_wrong(self, who: int, hours: int) -> None:
        clock = self.replicas[who].store.clock
        assert isinstance(clock, Clock)
        clock.now += timedelta(hours=hours)

    # Branches that stay

    def an_idea(self, replica: Replica, pick: int) -> str | None:
        names = [each.name for each in replica.session.branches() if each.name != "main"]
        return names[pick % len(names)] if names else None

    @rule(who=REPLICAS, name=st.integers(0, 2))
    def begin_branch(self, who: int, name: int) -> None:
        self.on(self.replicas[who], lambda s: s.branch(f"aside/{name}").close())

    @rule(who=REPLICAS, pick=st.integers(0, 50), away=st.booleans())
    def write_on_branch(self, who: int, pick: int, away: bool) -> None:
        replica = self.replicas[who]
        name = self.an_idea(replica, pick)
        if name is None:
            return
        with replica.store.session("shop") as aside:
            aside.switch(name)
            ids = sorted(each.id for each in aside.memories() if each.kind != "state")
            if not ids:
                return
            target = ids[pick % len(ids)]
            if away:
                self.on(replica, lambda _: aside.delete(target))
                self.doom(target, purge=False)
            else:
                text = self.marker(target)
                self.on(replica, lambda _: aside.edit(target, agent="agent", rationale=text))

    @rule(who=REPLICAS, pick=st.integers(0, 50))
    def merge_branch(self, who: int, pick: int) -> None:
        replica = self.replicas[who]
        name = self.an_idea(replica, pick)
        if name is not None:
            self.on(replica, lambda s: s.merge(name))

    @rule(who=REPLICAS, pick=st.integers(0, 50), discard=st.booleans())
    def drop_branch(self, who: int, pick: int, discard: bool) -> None:
        replica = self.replicas[who]
        name = self.an_idea(replica, pick)
        if name is not None:
            self.on(replica, lambda s: s.drop_branch(name, discard=discard))

    # What a person does with plain git in the folder of a replica, past the hooks

    @rule(who=REPLICAS, remote=REMOTES, push=st.booleans())
    def pull_inside(self, who: int, remote: str, push: bool) -> None:
        replica = self.replicas[who]

        def run(*arguments: str) -> bool:
            command = ["git", "-c", "core.hooksPath=/dev/null", *arguments]
            done = subprocess.run(command, cwd=replica.session.path, capture_output=True, check=False)  # fmt: skip
            return not done.returncode

        def work(_: Session) -> None:
            run("fetch", "-q", remote)
            if not run("merge", "-q", "--no-edit", f"{remote}/main"):
                run("merge", "--abort")
            if push:
                run("push", "-q", remote, "main")

        self.on(replica, work)

    @rule(who=REPLICAS, pick=st.integers(0, 50))
    def edit_inside(self, who: int, pick: int) -> None:
        replica = self.replicas[who]
        name = self.chosen(replica, pick)
        if name is None:
            return
        replica.session.check()
        file = replica.session.file(name)
        old = MARKER.search(file.read_bytes())
        if old is None:
            return
        new = self.marker(name).encode()

        def work(_: Session) -> None:
            file.write_bytes(file.read_bytes().replace(old[0], new, 1))
            git(replica.session.path, "commit", "-q", "-a", "--no-verify", "-m", "by hand")

        self.on(replica, work)

    @rule(who=REPLICAS, remote=REMOTES)
    def sync(self, who: int, remote: str) -> None:
        self.synced(self.replicas[who], remote)

    def synced(self, replica: Replica, remote: str) -> None:
        result = replica.session.sync(remote)
        there = git(self.folder / f"{remote}.git", "rev-parse", "refs/heads/main").strip()
        assert result.advertised == there == replica.session.head

    # What a person does with plain git, in a clone that knows nothing of smp

    @property
    def person(self) -> Path:
        return self.folder / "person"

    @rule(pick=st.integers(0, 50))
    def person_edits(self, pick: int) -> None:
        files = [p for p in sorted(self.person.rglob("*.yaml")) if parse_path(p.relative_to(self.person).as_posix())]  # fmt: skip
        holding = [path for path in files if MARKER.search(path.read_bytes())]
        if not holding:
            return
        path = holding[pick % len(holding)]
        data = path.read_bytes()
        old = MARKER.search(data)
        assert old is not None
        new = self.marker(path.stem).encode()
        path.write_bytes(data.replace(old[0], new))
        git(self.person, "commit", "-qam", "a change by hand")
        self.unpushed.add(new)
        self.replaced_by_person.add(old[0])

    @rule()
    def person_pulls_and_pushes(self) -> None:
        def run(*arguments: str) -> bool:
            return not subprocess.run(["git", *arguments], cwd=self.person, capture_output=True, check=False).returncode  # fmt: skip

        if not run("pull", "-q", "--no-rebase", "--no-edit"):
            run("merge", "--abort")
            return
        if run("push", "-q"):
            self.written |= self.unpushed
            self.excused |= self.replaced_by_person
            self.unpushed, self.replaced_by_person = set(), set()

    @rule()
    def person_starts_anew(self) -> None:
        git(self.person, "fetch", "-q")
        git(self.person, "reset", "-q", "--hard", "origin/main")
        self.unpushed, self.replaced_by_person = set(), set()

    # The end

    def teardown(self) -> None:
        if not hasattr(self, "folder"):
            return
        try:
            self.settle(2)
            self.compare()
            self.settle(1)
            self.check_redacted()
            self.rest()
        finally:
            for replica in self.replicas:
                if hasattr(replica, "session"):
                    replica.session.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def settle(self, times: int = 2) -> None:
        for _ in range(times):
            for replica in self.replicas:
                for remote in ("hub", "lag"):
                    self.synced(replica, remote)

    def rest(self) -> None:
        """Idle syncs come to one head on every branch, and make no commits then."""
        self.settle()
        before = self.heads()
        assert len({heads["refs/heads/main"] for heads in before}) == 1
        assert all(heads == before[0] for heads in before)
        self.settle()
        assert self.heads() == before

    def heads(self) -> list[dict[str, str]]:
        folders = [*(r.session.path for r in self.replicas), *(self.folder / f"{r}.git" for r in ("hub", "lag"))]  # fmt: skip
        rows = [git(each, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads") for each in folders]  # fmt: skip
        return [dict(row.split() for row in each.splitlines()) for each in rows]

    def compare(self) -> None:
        trees = {git(r.session.path, "rev-parse", "main^{tree}") for r in self.replicas}
        assert len(trees) == 1
        last = self.replicas[0]
        there = last.markers()
        gone = {mark for mark, owner in self.owner.items() if self.is_deleted(last, owner)}
        assert self.written - there - self.excused - gone == set()
        nowhere = self.doomed - there
        for replica in self.replicas:
            path = replica.session.path
            assert replica.session.check() == ()
            assert replica.session.verify().clean
            git(path, "fsck", "--strict")
            assert git(path, "status", "--porcelain") == ""
            assert b"<<<<<<<" not in b"".join(data for _, data in replica.files())
            assert independent_scan.scan(path, sorted(nowhere)) == []

    def check_redacted(self) -> None:
        for replica in self.replicas:
            assert independent_scan.scan(replica.session.path, sorted(self.redacted)) == []
        for name in ("hub", "lag"):
            objects = git(self.folder / f"{name}.git", "rev-list", "--objects", "--all", "--no-object-names")  # fmt: skip
            told = subprocess.run(["git", "cat-file", "--batch"], cwd=self.folder / f"{name}.git", input=objects.encode(), capture_output=True, check=True).stdout  # fmt: skip
            assert not self.redacted & set(MARKER.findall(told))

    @staticmethod
    def is_deleted(replica: Replica, name: str) -> bool:
        """Whether a memory was ever deleted or redacted, so that some of it may be gone."""
        return effective(replica.session._handle.reader).names(name)


TestReplicas = pytest.mark.slow(Replicas.TestCase)
TestReplicas.settings = settings(
    max_examples=max(5, (settings.default or settings()).max_examples // 10),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
