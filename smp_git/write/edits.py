"""Edits of memories: each staged and committed as one write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple, cast

from smp_git.format import imports, messages, metadata
from smp_git.format.metadata import Metadata
from smp_git.git.objects import ObjectId
from smp_git.model.memory import KINDS, Memory, MemoryId, Value, agent_name, check_fields
from smp_git.model.secrets.rules import Report, Rules
from smp_git.model.settings import row_of, split
from smp_git.model.times import When
from smp_git.read import imported
from smp_git.write.handle import Handle
from smp_git.write.stage import Draft, Labels, Stage, draft, full_links
from smp_git.write.writer import Change


class CleanNames(NamedTuple):
    """The tags and links of a memory, without secrets; None where none are given."""

    tags: Iterable[str] | None
    links: Iterable[object] | None


def new(
    handle: Handle,
    kind: str,
    text: str,
    agent: str | None,
    tags: Iterable[str] = (),
    links: Iterable[object] = (),
    at: When | None = None,
    fields: Mapping[str, object] | None = None,
    full: Callable[[str], MemoryId] | None = None,
) -> Draft:
    """Return a checked draft without secrets; `full` tells the full id of what a link leads to."""
    # Each look at the rules reads where the branch is.
    rules = handle.rules
    said = rules.cleaned(text, fields or {})
    named = names(rules, tags, full_links(links, full or partial(_full, handle)))
    made = draft(
        kind,
        cast("str", said.text),
        agent=handle.actor(agent, rules),
        at=handle.moment(at) if at is not None else None,
        tags=cast("Iterable[str]", named.tags),
        links=cast("Iterable[object]", named.links),
        fields=said.fields,
    )
    return replace(made, redacted=said.redacted)


def _full(handle: Handle, text: str) -> MemoryId:
    return handle.read(None, lambda now: now.full(text))


def one_link(relation: object, target: str | None) -> object:
    """Return a link that is given as a word and an id, or as one of both."""
    return relation if target is None else (relation, target)


def cleaned_labels(rules: Rules, labels: Labels) -> Labels:
    """Return new tags and links as they are; raise InvalidError if they hold a secret."""
    for tags, links in ((labels.tags, labels.links), (labels.add_tags, labels.add_links)):
        names(rules, tags, links)
    return labels


def names(rules: Rules, tags: Iterable[str] | None, links: Iterable[object] | None) -> CleanNames:
    """Return tags and links as they are; raise InvalidError if they hold a secret."""
    return CleanNames(
        cast("Iterable[str] | None", rules.names(tags, "a tag")),
        cast("Iterable[object] | None", rules.names(links, "a link")),
    )


def add(handle: Handle, made: Draft, *, skip_duplicates: bool = False) -> Memory:
    """Add a memory and return it."""
    return _run(handle, made.agent, lambda stage: stage.add(made, skip_duplicates=skip_duplicates))


def edit(
    handle: Handle,
    memory_id: str,
    agent: str | None,
    text: str | None,
    labels: Labels,
    fields: Mapping[str, object],
) -> Memory:
    """Change a memory and return it; a field set to None is removed."""
    rules = handle.rules
    said, clean = rules.cleaned(text, fields), cleaned_labels(rules, labels)

    def work(stage: Stage) -> Memory:
        return stage.edit(memory_id, text=said.text, labels=clean, fields=said.fields)

    return _one(handle, agent, work, said.redacted)


class Resolution(NamedTuple):
    """How a finding or a decision was resolved, in the words of who says so."""

    action: str | None = None
    by: str | None = None
    verification: str | None = None
    next_steps: str | None = None

    @property
    def said(self) -> dict[str, object]:
        """What is said, under the names that a resolution has for it."""
        found = {
            "action_taken": self.action,
            "resolved_by": self.by,
            "verification": self.verification,
            "next_steps": self.next_steps,
        }
        return {name: text for name, text in found.items() if text}


def resolve(handle: Handle, memory_id: str, agent: str | None, how: Resolution) -> Memory:
    """Mark a finding or a decision as resolved."""
    said = handle.rules.cleaned(None, how.said)
    return _one(handle, agent, lambda stage: stage.resolve(memory_id, said.fields), said.redacted)


def supersede(
    handle: Handle,
    memory_id: str,
    text: str,
    agent: str | None,
    tags: Iterable[str],
    links: Iterable[object],
    fields: Mapping[str, object],
) -> Memory:
    """Add a memory that replaces another of the same kind; the other says so."""
    old = handle.read(None, lambda snapshot: snapshot.get(snapshot.find(memory_id)))
    made = new(handle, old.kind, text, agent, tags or old.tags, links, None, fields)
    return _run(handle, made.agent, lambda stage: stage.supersede(old.id, made))


def pin(handle: Handle, memory_id: str, agent: str | None, *, pinned: bool) -> Memory:
    """Keep a memory from decay and compaction, or let it decay again."""
    return _one(handle, agent, lambda stage: stage.pin(memory_id, pinned=pinned))


def link(handle: Handle, memory_id: str, link: object, agent: str | None) -> Memory:
    """Link a memory to another."""
    names(handle.rules, None, [link])
    return _one(handle, agent, lambda stage: stage.link(memory_id, link))


def unlink(handle: Handle, memory_id: str, link: object, agent: str | None) -> Memory:
    """Remove a link."""
    return _one(handle, agent, lambda stage: stage.unlink(memory_id, link))


def set_state(handle: Handle, agent: str, fields: Mapping[str, object]) -> Memory:
    """Replace the state of an agent."""
    said = handle.rules.cleaned(None, fields)
    return _one(handle, agent, lambda stage: stage.set_state(agent, said.fields), said.redacted)


def update_state(handle: Handle, agent: str, changes: Mapping[str, object]) -> Memory:
    """Merge changes into the state of an agent; None removes a key, at any depth."""
    said = handle.rules.cleaned(None, changes)
    return _one(handle, agent, lambda stage: stage.update_state(agent, said.fields), said.redacted)


def override(handle: Handle, settings: Mapping[str, object], agent: str | None) -> Change:
    """Set settings for this session alone; None removes one."""
    given, before = check_fields(KINDS["state"], settings), handle.metadata
    handle.defaults.of_session(given, "overrides")
    for name in settings.keys() - before.settings.keys():
        row_of(name, "overrides")

    def kept(said: Metadata) -> dict[str, Value]:
        both = {**said.settings, **given}
        return {name: each for name, each in both.items() if settings.get(name, "") is not None}

    def rules(said: Metadata) -> Rules:
        return handle.defaults.as_far_as_possible(kept(said), "overrides").settings.rules

    who = rules(before).name(agent, "the name of an agent") or before.user or "user"

    def work(stage: Stage) -> None:
        # Somebody else may have set another one meanwhile.
        now = stage.base.metadata
        clean = split(check_fields(KINDS["state"], rules(now).settings(kept(now))))
        blob = stage.base.repository.find(stage.base.tree, metadata.PATH)
        old = stage.base.repository.blob(ObjectId(blob)) if blob else b""
        stage.put_file(metadata.PATH, metadata.with_settings(old, clean), "")

    subject = messages.settings_of(settings)
    return handle.writer.run(agent_name(who), work, subject=subject)[1]


def never_import(handle: Handle, sources: Iterable[str], agent: str | None) -> None:
    """Note, by digests, that no import brings these memories of other programs in again."""
    uid = handle.metadata.uid
    digests = {imports.digest(uid, source) for source in sources}

    def work(stage: Stage) -> None:
        known = imported.digests(stage.base)
        if not digests <= known:
            stage.put_file(imports.PATH, imports.write(known | digests), "")

    if digests:
        handle.main_writer.run(handle.actor(agent), work, subject=messages.IMPORTS)


def staged(
    handle: Handle, agent: str | None, work: Callable[[Stage], None], subject: str
) -> Change:
    """Stage what touches many memories, or no memory by its id, and commit it."""
    return handle.writer.run(handle.actor(agent), handle.guarded(work), subject=subject)[1]


def _one(
    handle: Handle, agent: str | None, work: Callable[[Stage], Memory], redacted: Report = ()
) -> Memory:
    return _run(handle, handle.actor(agent), work, redacted)


def _run(
    handle: Handle, who: str, work: Callable[[Stage], Memory], redacted: Report = ()
) -> Memory:
    memory, change = handle.writer.run(who, handle.guarded(work))
    commit = change.commit or handle.reader.snapshot().id
    return replace(memory, commit=commit, redacted=redacted or memory.redacted)
