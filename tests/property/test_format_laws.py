"""The laws of the format: what is written reads back, alike for every reader."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from smp_git.format import dialect, document, lines, messages, yamlfile
from smp_git.format.messages import TITLED, Touch
from smp_git.git.objects import (
    BLOB,
    COMMIT,
    TREE,
    Child,
    Object,
    Signature,
    object_id,
    read_commit,
    read_tree,
    write_commit,
    write_tree,
)
from smp_git.git.storage import Written, store
from smp_git.model.errors import InvalidFileError
from smp_git.model.ids import Id, parse_id, parse_path
from smp_git.model.memory import FIXED, CommitId, Memory, check_fields, is_same, says_same
from smp_git.read.pages import row_of
from smp_git.remove.history import judge
from tests import strategies
from tests.support import git, git_input, python

SLOW = settings(max_examples=20)


# Memories


@given(strategies.memories())
def test_what_is_encoded_decodes_to_the_same(memory: Memory) -> None:
    found = document.decode(document.encode(memory), memory.path)

    assert says_same(found, memory)


@given(strategies.memories())
def test_encoding_is_stable(memory: Memory) -> None:
    file = document.encode(memory)

    assert document.encode(document.decode(file, memory.path)) == file


@given(strategies.memories())
def test_what_the_program_writes_is_in_the_dialect(memory: Memory) -> None:
    dialect.read(dialect.write(document.mapping_of(memory)))


@given(strategies.places())
def test_id_and_path_name_each_other(place: Id) -> None:
    assert parse_id(place.text) == place
    assert parse_path(place.path) == place


@given(strategies.texts)
def test_no_text_but_an_id_is_a_path(text: str) -> None:
    place = parse_path(f"decisions/000/{text}")

    assert place is None or place.path == f"decisions/000/{text}"


# The dialect


@given(strategies.mappings)
def test_dialect_reads_what_it_writes(mapping: dict[str, Any]) -> None:
    assert is_same(dialect.read(dialect.write(mapping)), mapping)


def _ruamel(kind: str) -> Any:
    return lambda text: YAML(typ=kind, pure=True).load(text)


READERS = {
    "PyYAML, YAML 1.1": yaml.safe_load,
    "PyYAML in C, YAML 1.1": lambda text: yaml.load(text, yaml.CSafeLoader),
    "our reader for other people's files": lambda text: yamlfile._read_any(text, "file", 1),
    "ruamel safe": _ruamel("safe"),
    "ruamel round trip": _ruamel("rt"),
}


@pytest.mark.parametrize("reader", READERS)
@given(mapping=strategies.mappings)
def test_every_reader_reads_the_dialect_alike(reader: str, mapping: dict[str, Any]) -> None:
    found = READERS[reader](dialect.write(mapping))

    assert is_same(_plain(found), mapping)


def _plain(value: Any) -> Any:
    """Return what ruamel's own types stand for."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind) or (kind is bool and type(value).__name__ == "ScalarBoolean"):
            return kind(value)
    return value


_DAMAGE = ("", " ", "  ", "- ", "\t", ":", "#", '"', "'", "|", "x", "\n", "-", "[", "{", "1", "\x7f", "\u2028", "\\", "é")  # fmt: skip


@st.composite
def _damaged(draw: st.DrawFn) -> str:
    """Text in the dialect with a few pieces put in or taken out, as by a careless hand."""
    text = dialect.write(draw(strategies.mappings))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 3)))
        text = text[:start] + draw(st.sampled_from(_DAMAGE)) + text[end:]
    return text


@given(_damaged())
@example("a: |-\n  b\n\n")
@example("a:\n- \n")
@example('a: "\x7f"\n')
@example('a: "x\u2028y"\n')
@example('a: "\\ud83d\\ude00"\n')
def test_fast_reader_never_reads_otherwise_than_yaml(text: str) -> None:
    try:
        found = dialect.read(text)
    except dialect.NotDialectError:
        return
    assert is_same(found, yamlfile._read_any(text, "file", 1))


@given(st.text(strategies.characters, max_size=60) | _damaged())
def test_any_text_is_read_or_refused_in_one_sentence(text: str) -> None:
    with suppress(InvalidFileError):
        yamlfile.read(text, "file")


# Edits of files that a person wrote


@st.composite
def _commented(draw: st.DrawFn, file: bytes) -> tuple[bytes, list[str]]:
    """The file with comments above some of its top-level keys, and with blank lines."""
    front = 1 if file.startswith(b"---\n") else 0
    yaml_part, fence, body = file.decode()[4 * front :].partition("---\n") if front else (file.decode(), "", "")  # fmt: skip
    rows = yaml_part.split("\n")[:-1]
    comments = []
    out = []
    for number, row in enumerate(rows):
        if row[:1] not in (" ", "-", "") and draw(st.booleans()):
            comments.append(f"# remark {number}: - é {{")
            out += [comments[-1]] + [""] * draw(st.integers(0, 1))
        out.append(row)
    return ("---\n" * front + "".join(f"{row}\n" for row in out) + fence + body).encode(), comments


@given(st.data())
def test_comments_and_unknown_fields_survive_an_edit(data: st.DataObject) -> None:
    memory = data.draw(strategies.memories())
    file, comments = data.draw(_commented(document.encode(memory)))
    old = document.decode(file, memory.path)
    assert says_same(old, memory)
    kind = parse_id(old.id).kind
    changed = {**old.fields, **check_fields(kind, data.draw(strategies.fields(kind)))}
    loose = sorted(changed.keys() - set(FIXED))
    for name in data.draw(st.sets(st.sampled_from(loose), max_size=2)) if loose else ():
        del changed[name]
    new = replace(
        old,
        fields=MappingProxyType(changed),
        tags=tuple(data.draw(strategies.tags)),
        links=document.check_links(data.draw(strategies.links)),
        updated_at=data.draw(strategies.times),
    )
    new = replace(new, title=document.title(parse_id(new.id), new.content, changed))
    found = document.edited(file, old, new)

    assert says_same(document.decode(found, memory.path), new)
    text = found.decode()
    assert [comment for comment in comments if comment not in text] == []


def test_edit_leaves_every_other_byte_as_a_person_wrote_it() -> None:
    text = (
        "# top\nid:   DEC-0001\n\nimpact: high   # because\n"
        "tags:   [ a,\n   b ]\nnote: 'one'\n# end\n"
    )
    found = yamlfile.edit(text, {"impact": "low"}, ("id", "impact", "tags", "note"))

    assert found == text.replace("high", "low")


def test_new_key_goes_to_its_place_in_the_order() -> None:
    found = yamlfile.edit("id: x\nagent: a # who\n", {"updated_at": "u"}, ("id", "updated_at", "agent"))  # fmt: skip

    assert found == "id: x\nupdated_at: u\nagent: a # who\n"


# Index lines


@given(strategies.memories())
def test_index_line_reads_back_and_is_yaml_and_json(memory: Memory) -> None:
    file = document.encode(memory)
    line, entry = row_of(file, memory.path, object_id(BLOB, file))

    assert lines.read_lines([line]) == [entry]
    assert line.count("\n") == 1
    loaded = yaml.load(line, yaml.CSafeLoader)
    assert loaded == yaml.safe_load(line)
    assert loaded[0]["title"] == entry.title


@given(strategies.memories())
def test_index_line_is_a_function_of_the_file(memory: Memory) -> None:
    file = document.encode(memory)
    elsewhere = replace(memory, commit=CommitId("x"), size_bytes=7)

    assert row_of(file, memory.path, "b") == row_of(document.encode(elsewhere), memory.path, "b")


# What people and other programs do to a file, and what its writers must never do.
_BITS = (
    "\n", " ", "  ", "- ", ":", ": ", "|", "|-\n", '"', "'", "#", " # why", "---\n", "\t", "\0", "\r", "\x85",
    "\u2028", "\ufeff", "a: b\n", "  a: b\n", "- a\n", "tags: []\n", "tags:\n- x\n", "id: x\n", "links: {}\n",
    "kind: turn\n", "generation: 2\n", "generation: 1\n", "life: brightly\n", "life:\n", "title: |\n  two\n  lines\n", 'title: " "\n', "title: null\n", "pinned: true\n", "pinned: 1\n",
    "status: open\n", "status: 5\n", "resolution:\n  status: done\n", "key: k\n", "topic: t\n", "confidence: .5\n",
    "tokens: -1\n", "turn_ref: 12\n", "created_at: 2026-01-01\n", 'updated_at: "2026-01-01T24:00:00Z"\n', 'updated_at: "2026-01-01T00:00:00.000000Z"\n',
    "on: x\n", "{}\n", "9", "é", "decision: x\n", "content: x\n", "agent: Ada Lovelace\n", "agent: 5\n",
)  # fmt: skip


@settings(max_examples=300)
@given(strategies.memories(), st.data())
def test_whatever_was_done_to_a_file_its_line_reads_back(memory: Memory, data: st.DataObject) -> None:  # fmt: skip
    text = document.encode(memory).decode()
    for _ in range(data.draw(st.integers(1, 3))):
        starts = [0, *(at + 1 for at, letter in enumerate(text) if letter == "\n")]
        at = data.draw(st.sampled_from(starts) | st.integers(0, len(text)))
        gone = data.draw(st.sampled_from((0, 0, 1, 3)))
        text = text[:at] + data.draw(st.sampled_from(_BITS)) + text[at + gone :]
    try:
        line, entry = row_of(text.encode(), memory.path, "b" * 40)
    except InvalidFileError:
        return

    assert lines.read_lines([line]) == [entry]


@given(st.lists(strategies.memories(), max_size=2), st.sampled_from(("", "{", "[[", "null", "1,2", '{"id":1}')))  # fmt: skip
def test_bad_line_does_not_hide_its_neighbours(memories: list[Memory], bad: str) -> None:
    rows = [row_of(document.encode(item), item.path, "b") for item in memories]
    found = lines.read_lines([f"- {bad}\n", *(line for line, _ in rows)])

    assert found == [None, *(entry for _, entry in rows)]


@given(st.dictionaries(st.sampled_from((*lines.Entry._fields, "other")), strategies.values))
def test_line_that_lies_about_its_types_is_not_read(item: dict[str, Any]) -> None:
    found = lines._entry(item)

    assert found is None or isinstance(found.title, str)


# Commit messages

touches = st.builds(
    lambda verb, place, title: Touch(verb, place.kind.name, place.text, title),
    st.sampled_from(("", "edit", "resolve", "supersede", "pin", "unpin", "link", "unlink", "undo", "rollback", "remove", "restore")),
    strategies.places(),
    strategies.texts,
)  # fmt: skip


@given(st.lists(touches, min_size=1, max_size=100), strategies.agents, strategies.texts)
def test_message_keeps_what_was_touched(items: list[Touch], agent: str, reason: str) -> None:
    found = messages.read(messages.write(items, agent, "turn-0001", reason))

    assert [touch[:3] for touch in found.touches] == [touch[:3] for touch in items]
    assert all(touch.title == "" for touch in found.touches if touch.verb not in TITLED)
    assert (found.agent, found.turn) == (agent, "turn-0001")
    assert (found.reason or "") == messages._one_line(reason)


@given(touches, st.integers(101, 10_000), strategies.agents)
def test_message_of_a_batch_names_nobody(item: Touch, count: int, agent: str) -> None:
    said = f"{item.verb} {count:,} {item.kind}s".strip()

    assert messages.write([item] * count, agent) == f"batch: {said}\n\nAgent: {agent}\n"
    undone = messages.write([item._replace(verb="undo")] * count, agent, subject="undo batch")
    assert undone == f"undo batch: {count:,} {item.kind}s\n\nundo batch\n\nAgent: {agent}\n"
    carried = messages.write([item] * count, agent, subject="carry batch")
    assert carried == f"carry batch\n\nAgent: {agent}\n"


@given(touches, st.integers(11, 100), strategies.agents)
def test_counts_come_before_the_lines_of_many_and_go_with_the_first_that_is_deleted(
    item: Touch, count: int, agent: str
) -> None:
    text = messages.write([item] * count, agent)
    without = judge.without(text.encode(), lambda _: False, touches=True).decode()

    assert messages.head(messages.read(text).subject) == "batch"
    assert len(messages.read(text).touches) == count
    assert "batch" not in without.partition("\n")[0]
    assert messages.read(without).touches == messages.read(text).touches


# Git's own objects

_names = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8)  # fmt: skip


@SLOW
@given(entries=st.dictionaries(_names, st.booleans(), min_size=1, max_size=12))
def test_trees_are_the_bytes_that_git_makes(
    entries: dict[str, bool], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = _repository(tmp_path_factory)
    children = {
        name: Child("40000", object_id(TREE, b"")) if is_folder else Child("100644", object_id(BLOB, b""))
        for name, is_folder in entries.items()
    }  # fmt: skip
    rows = b"".join(
        f"{c.mode.zfill(6)} {'tree' if c.mode == '40000' else 'blob'} {c.id}\t{name}\0".encode()
        for name, c in children.items()
    )
    made = write_tree(children)

    assert git_input(folder, rows, "mktree", "-z", "--missing") == object_id(TREE, made)
    assert read_tree(made) == children


@SLOW
@given(text=strategies.texts, reason=strategies.texts, parents=st.integers(0, 2), seconds=st.integers(0, 4_000_000_000))  # fmt: skip
def test_commits_are_the_bytes_that_git_makes(
    text: str, reason: str, parents: int, seconds: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = _repository(tmp_path_factory)
    tree = object_id(TREE, b"")
    message = messages.write([Touch("", "decision", parse_id("DEC-0001").text, text)], "ada", None, reason)  # fmt: skip
    at = strategies.EPOCH + strategies.SECOND * seconds
    above = [
        CommitId(git_input(folder, f"{n}\n".encode(), "commit-tree", tree)) for n in range(parents)
    ]
    made = write_commit(
        tree, tuple(above), Signature("ada", "ada@smp", at), Signature("smp-k3fq", "k3fq@smp", at), message
    )  # fmt: skip
    person = {
        "GIT_AUTHOR_NAME": "ada", "GIT_AUTHOR_EMAIL": "ada@smp", "GIT_AUTHOR_DATE": f"@{seconds} +0000",
        "GIT_COMMITTER_NAME": "smp-k3fq", "GIT_COMMITTER_EMAIL": "k3fq@smp", "GIT_COMMITTER_DATE": f"@{seconds} +0000",
    }  # fmt: skip
    flags = [part for parent in above for part in ("-p", parent)]

    assert git_input(folder, message.encode(), "commit-tree", tree, *flags, **person) == object_id(COMMIT, made)  # fmt: skip
    assert read_commit(CommitId("x"), made).message == message


@SLOW
@given(data=strategies.texts)
def test_blobs_have_the_names_that_git_gives(
    data: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = _repository(tmp_path_factory)

    assert git_input(folder, data.encode(), "hash-object", "--stdin") == object_id(BLOB, data.encode())  # fmt: skip


@settings(max_examples=5)
@given(contents=st.sets(strategies.texts | st.binary(max_size=400), min_size=64, max_size=80))
def test_git_takes_the_packs(
    contents: set[str | bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = _repository(tmp_path_factory)
    blobs = [Object(BLOB, data.encode() if isinstance(data, str) else data) for data in contents]
    tree = Object(TREE, write_tree({f"f{n}": Child("100644", blob.id) for n, blob in enumerate(blobs)}))  # fmt: skip
    at = strategies.EPOCH
    commit = Object(COMMIT, write_commit(tree.id, (), Signature("a", "a@smp", at), Signature("b", "b@smp", at), "m\n"))  # fmt: skip
    written = Written(folder / ".git" / "objects")
    store(folder / ".git" / "objects", [*blobs, tree, commit], written)
    written.close()
    pack = max((folder / ".git/objects/pack").glob("*.pack"), key=lambda file: file.stat().st_mtime_ns)  # fmt: skip

    assert "ok" in git(folder, "verify-pack", "-v", str(pack))
    git(folder, "index-pack", "--strict", "-o", str(folder / "again.idx"), str(pack))
    assert (folder / "again.idx").read_bytes() == pack.with_suffix(".idx").read_bytes()
    (folder / "again.idx").unlink()


_made: dict[str, Path] = {}


def _repository(factory: pytest.TempPathFactory) -> Path:
    """Return one empty repository for all examples."""
    if "path" not in _made:
        _made["path"] = factory.mktemp("git")
        git(_made["path"], "init", "-q")
        (_made["path"] / ".git/smp").mkdir()
    return _made["path"]


def test_parser_of_other_files_is_the_one_in_c() -> None:
    code = "import sys; from smp_git.format import yamlfile; yamlfile.read('a:  [b]', ''); print(*sys.modules)"
    loaded = python(code).stdout.split()

    assert "_ruamel_yaml" in loaded
    assert "yaml" not in loaded


def test_reader_of_other_files_is_that_of_yaml_1_2() -> None:
    text = (
        "a: no\nb: 0o17\nc: 017\nd: 1_000\ne: 2026-01-11\nf: true\ng: ~\nh: 1e3\ni: 12:30\n1: x\n"
    )

    assert yamlfile.read(text, "file") == {
        "a": "no", "b": 15, "c": 17, "d": "1_000", "e": "2026-01-11", "f": True, "g": None,
        "h": 1000.0, "i": "12:30", "1": "x",
    }  # fmt: skip
