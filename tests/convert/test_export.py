"""What is exported can be imported again without loss; what matches, alone; the history, whole."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smp_git import Memory, Session, Store
from smp_git.convert import export
from smp_git.errors import AlreadyExistsError, InvalidError, SmpError
from smp_git.format.yamlfile import read as read_yaml
from tests.conftest import Clock
from tests.support import ROOT, git, own, python, smp, untyped


def _filled(store: Store) -> Session:
    session = store.create_session("shop", user="ada", agents=["veritas"], tags=["login"])
    finding = session.add(
        "finding",
        "No MFA",
        agent="veritas",
        severity="critical",
        tags=["security"],
        **own(custom={"a": 1}),
    )
    decision = session.add(
        "decision", "Use OAuth 2.0", links=[("resolves", finding.id)], rationale="Standard"
    )
    session.add("turn", "---\nnot: front matter\n---\n\n# What now? ", role="user", speaker="ada")
    session.add("preference", "Be brief", category="style", key="length", value="short")
    session.add("artifact", "A note\n", name="note.md")
    session.add("learning", "Ask for MFA early — “always”", turn_ref="turn-0001")
    session.set_state("veritas", {"current_context": {"task": "verify"}})
    session.pin(decision.id)
    session.get(finding.id)
    return session


def _said(session: Session) -> list[dict[str, object]]:
    """Return what memories say, without where they came from and how often they were read."""
    out = []
    for memory in session.memories():
        said = memory.as_json()
        fields = dict(memory.fields)
        source = fields.pop("source_given", None) or fields.pop("source", None)
        assert source is None or str(source).endswith(memory.id)
        fields.pop("last_updated", None)
        said["fields"] = fields
        for name in ("commit", "path", "size_bytes", "updated_at", "last_accessed"):
            said.pop(name)
        if memory.kind == "state":
            said.pop("created_at")
        out.append(said)
    return out


@pytest.mark.parametrize("name", ["jsonl", "json", "yaml"])
def test_own_formats_lose_nothing(store: Store, tmp_path: Path, name: str, clock: Clock) -> None:
    with _filled(store) as session:
        before = _said(session)
        list(session.export(name, to=tmp_path / f"out.{name}"))
    again = Store.init(tmp_path / "again", clock=clock)

    done = again.import_(tmp_path / f"out.{name}")

    assert (done.problems, done.added) == ((), len(before))
    with again.session("shop") as session:
        assert _said(session) == before
        assert session.metadata.user == "ada"
        assert session.metadata.tags == ("login",)
    assert again.import_(tmp_path / f"out.{name}").added == 0


@pytest.mark.parametrize("name", ["000", "001", "003", "004"])
def test_formats_of_others_keep_what_they_have_a_place_for(
    store: Store, tmp_path: Path, name: str
) -> None:
    with _filled(store) as session:
        place = tmp_path / ("shop.jsonl" if name == "000" else "shop")
        list(session.export(name, to=place))
        texts = {each.content.strip(): each.kind for each in session.memories()}
    again = Store.init(tmp_path / "again")

    done = again.import_(place)

    assert (done.format, done.problems) == (name, ())
    kept = {"000": 5, "001": 4, "003": 7, "004": 5}[name]
    assert done.added == kept
    with again.session("shop") as session:
        for memory in session.memories():
            assert texts[memory.content.strip()] == memory.kind
        decision = session.memories("decision")[0]
        assert decision.fields["rationale"] == "Standard"
        if name != "000":
            assert [link.target for link in decision.links] == ["FIND-0001"]


_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=60)
_visible = _text.filter(lambda text: bool(text.strip()))
_fields = st.dictionaries(
    st.sampled_from(["rationale", "custom", "impact", "note.x"]), _text, max_size=3
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    items=st.lists(
        st.tuples(st.sampled_from(["decision", "finding", "turn", "learning"]), _visible, _fields),
        max_size=4,
    )
)
def test_import_of_an_export_says_the_same(
    tmp_path_factory: pytest.TempPathFactory, items: list[tuple[str, str, dict[str, str]]]
) -> None:
    place = tmp_path_factory.mktemp("trip")
    store = Store.init(place / "store")
    with store.create_session("shop", overrides={"redaction": "off"}) as session:
        for kind, text, fields in items:
            session.add(untyped(kind), text, agent="veritas", **dict[str, Any](fields))
        before = _said(session)
        for name in ("jsonl", "json", "yaml"):
            list(session.export(name, to=place / name))
    for name in ("jsonl", "json", "yaml"):
        again = Store.init(place / f"again-{name}")
        again.import_(place / name, as_format=name)
        if items:
            with again.session("shop") as copy:
                assert _said(copy) == before


def test_only_what_matches_is_exported(store: Store) -> None:
    with _filled(store) as session:
        lines = [json.loads(line) for line in "".join(session.export(text="MFA")).splitlines()]
        kinds = "".join(session.export("000", kinds=["finding"]))

    assert {line["id"] for line in lines[1:]} == {"FIND-0001", "LEARN-0001"}
    assert len(kinds.splitlines()) == 1


def test_document_reads_from_top_to_bottom(store: Store) -> None:
    with _filled(store) as session:
        text = "".join(session.export("markdown"))

    order = [text.index(f"## {name}") for name in ("Conversation", "Decisions", "Findings")]
    assert order == sorted(order)
    assert "### DEC-0001: Use OAuth 2.0" in text
    assert "- **resolves:** FIND-0001" in text
    assert "{'" not in text


def test_bundle_moves_house_with_the_whole_history(store: Store, tmp_path: Path) -> None:
    with _filled(store) as session:
        session.tag("before")
        session.branch("idea").close()
        session.edit("DEC-0001", impact="high")
        head = session.head
        list(session.export("bundle", to=tmp_path / "shop.zip"))
    again = Store.init(tmp_path / "again")

    done = again.import_(tmp_path / "shop.zip")

    assert (done.format, done.sessions[0].session) == ("bundle", "shop")
    with again.session("shop") as session:
        assert session.head == head
        assert session.get("FIND-1").access_count
        assert [tag.name for tag in session.tags()] == ["before"]
        assert {branch.name for branch in session.branches()} >= {"main", "idea"}
        assert session.check() == ()
        assert dict(session.remotes) == {}
        assert git(session.path, "remote") == ""


def test_export_overwrites_nothing(store: Store, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with _filled(store) as session:
        with pytest.raises(AlreadyExistsError):
            session.export("003", to=tmp_path / "out")
        with pytest.raises(InvalidError, match="is not one text"):
            session.export("003")
        with pytest.raises(InvalidError, match="no format 'xml'"):
            session.export("xml")
    assert (tmp_path / "out").read_text() == "mine"


def test_batch_is_one_commit_with_links_between_its_items(session: Session) -> None:
    items: list[Mapping[str, object]] = [
        {"id": "a", "kind": "decision", "text": "Use OAuth", "links": [["resolves", "b"]]},
        {"id": "b", "kind": "finding", "text": "No login", "severity": "high", "tags": ["auth"]},
        {"kind": "turn", "text": "Hello", "at": "2026-01-02T00:00:00Z", "fields": {"role": "user"}},
    ]
    before = session.head

    change = session.add_many(items, agent="veritas")

    assert [touch.id for touch in change.touches] == ["DEC-0001", "FIND-0001", "turn-0001"]
    assert git(session.path, "rev-list", "--count", f"{before}..HEAD").strip() == "1"
    assert [link.target for link in session.get("DEC-1").links] == ["FIND-0001"]
    assert session.get("turn-1").created_at == datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"kind": "dream", "text": "x"}, "no kind"),
        ({"kind": "finding", "text": ""}, "needs text"),
        ({"kind": "finding", "text": "x", "severity": "hgh"}, "severity"),
        ({"kind": "finding", "text": "x", "links": "b"}, "links"),
        ({"kind": "finding", "text": 3}, "text"),
        ("text", "mapping"),
    ],
)
def test_batch_with_a_bad_item_names_it_and_adds_nothing(
    session: Session, bad: Mapping[str, object], why: str
) -> None:
    head = session.head

    with pytest.raises(InvalidError, match=f"item 2: .*{why}"):
        session.add_many([{"kind": "finding", "text": "Good"}, bad])

    assert session.head == head
    assert session.memories() == ()


def test_ten_thousand_are_added_in_one_call_with_progress(session: Session) -> None:
    seen: list[int] = []

    def items() -> Iterator[Mapping[str, object]]:
        for number in range(2_000):
            yield {"kind": "finding", "text": f"Finding number {number}"}

    session.add_many(items(), progress=seen.append)

    assert len(session.memories()) == 2_000
    assert seen == sorted(seen)
    assert seen[-1] == 2_000


def test_command_adds_a_batch_from_a_file_and_a_pipe(store: Store, tmp_path: Path) -> None:
    store.create_session("shop").close()
    lines = '{"kind": "finding", "text": "One"}\n\n{"kind": "finding", "text": "Two"}\n'
    (tmp_path / "batch.jsonl").write_text(lines)
    root = ("--root", store.path)

    assert smp(*root, "add", "--batch", tmp_path / "batch.jsonl").stdout.split() == [
        "FIND-0001",
        "FIND-0002",
    ]
    assert smp(*root, "add", "--batch", "-", stdin=lines).stdout.split() == [
        "FIND-0003",
        "FIND-0004",
    ]
    done = smp(*root, "add", "--batch", "-", stdin="{", check=False)
    assert (done.returncode, "line 1 is not JSON" in done.stderr) == (4, True)
    assert smp(*root, "add", "finding", "--batch", "-", check=False).returncode == 4


def test_command_imports_and_exports(store: Store, tmp_path: Path) -> None:
    with _filled(store):
        pass
    root = ("--root", store.path)

    smp(*root, "export", "-o", tmp_path / "shop.jsonl")
    smp("init", tmp_path / "again")
    other = ("--root", tmp_path / "again")
    done = smp(*other, "import", tmp_path / "shop.jsonl")

    assert done.stdout.startswith("shop: imported ")
    assert "already here" in smp(*other, "import", tmp_path / "shop.jsonl").stdout
    said = json.loads(smp(*other, "--json", "import", tmp_path / "shop.jsonl").stdout)
    assert said["sessions"][0]["known"] == 7
    assert "-s shop" not in smp(*other, "-s", "shop", "export", "MFA").stdout


def test_receipt_names_the_exports_that_are_still_there(store: Store, tmp_path: Path) -> None:
    with _filled(store) as session:
        list(session.export("markdown", to=tmp_path / "shop.md"))
        list(session.export("jsonl", to=tmp_path / "gone.jsonl"))
        (tmp_path / "gone.jsonl").unlink()
        receipt = session.delete("DEC-0001")

    told = " ".join(receipt.out_of_reach)
    assert "shop.md of 2026-01-11: a copy, not looked into" in told
    assert "gone.jsonl" not in told


def test_receipt_names_an_export_that_another_overtook(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = export._written

    def slow(*arguments: Any) -> None:
        monkeypatch.setattr(export, "_written", written)
        list(session.export("jsonl", to=tmp_path / "other.jsonl"))
        written(*arguments)

    with _filled(store) as session:
        monkeypatch.setattr(export, "_written", slow)
        list(session.export("jsonl", to=tmp_path / "slow.jsonl"))
        told = " ".join(session.delete("DEC-0001").out_of_reach)

    assert "other.jsonl" in told
    assert "slow.jsonl" in told


def test_receipt_names_what_a_killed_export_left(store: Store, tmp_path: Path) -> None:
    _filled(store).close()
    code = "import os, sys; from pathlib import Path; from smp_git import Store; Path.rename = lambda *_: os._exit(73); list(Store.open(sys.argv[1]).session('shop').export('jsonl', to=sys.argv[2]))"
    assert python(code, store.path, tmp_path / "shop.jsonl", check=False).returncode == 73
    assert (tmp_path / ".shop.jsonl.tmp").exists()

    with store.session("shop") as session:
        told = " ".join(session.delete("DEC-0001").out_of_reach)

    assert ".shop.jsonl.tmp" in told


def test_export_without_names_keeps_the_structure(store: Store) -> None:
    with _filled(store) as session:
        session.add("decision", "Ada decides", made_by="Ada Lovelace")
        text = "".join(session.export("jsonl", anonymous=True))

    assert "Ada" not in text
    assert '"user": "User-1"' in text
    assert '"target": "FIND-0001"' in text


@pytest.mark.parametrize("name", ["jsonl", "001", "003", "004", "yaml"])
def test_store_is_exported_and_imported_whole(store: Store, tmp_path: Path, name: str) -> None:
    for each in ("one", "two"):
        with store.create_session(each) as session:
            session.add("finding", f"Found in {each}", agent="veritas")
    if name == "jsonl":
        (tmp_path / "all.jsonl").write_text("".join(store.export()))
        places = [tmp_path / "all.jsonl"]
    else:
        list(store.export(name, to=tmp_path / "all"))
        whole = name in ("001", "003", "004")
        places = [tmp_path / "all"] if whole else sorted((tmp_path / "all").iterdir())
    again = Store.init(tmp_path / "again")

    for place in places:
        again.import_(place)

    assert again.sessions() == ("one", "two")
    with again.session("two") as session:
        assert session.memories()[0].content == "Found in two"


def test_file_that_the_mcp_memory_server_wrote(store: Store) -> None:
    done = store.import_(ROOT / "tests/data/foreign/mcp-memory/memory.jsonl")

    with store.session(done.sessions[0].session) as session:
        assert [each.title for each in session.memories("learning")] == ["Ada", "Shop"]
        assert [link.relation for link in session.get("LEARN-1").links] == ["works_on"]


_phrase = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=60
).filter(lambda text: bool(text.strip()))
# What Markdown, YAML and the headings of a conversation are made of.
_hostile = st.lists(
    st.sampled_from(["## Turn 1 - x", "---", "\n", "\\", "**A:** b", "- ", " ", "a", ": ", "#", '"', "\u2028"]),
    min_size=1, max_size=8,
).map("".join).filter(lambda text: bool(text.strip()))  # fmt: skip
_REST: dict[str, st.SearchStrategy[Any]] = {
    "decision": st.fixed_dictionaries({}, optional={"rationale": _phrase, "custom": _phrase}),
    "finding": st.fixed_dictionaries(
        {}, optional={"severity": st.sampled_from(["critical", "low"]), "evidence": _phrase}
    ),
    "preference": st.fixed_dictionaries({"category": _phrase}, optional={"value": _phrase}),
    "turn": st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"])}),
}


def _an_item(kind: str) -> st.SearchStrategy[tuple[str, str, Any]]:
    return st.tuples(st.just(kind), _phrase | _hostile, _REST[kind])


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    items=st.lists(
        st.sampled_from(sorted(_REST)).flatmap(_an_item),
        min_size=1,
        max_size=4,
    ),
    name=st.sampled_from(["000", "001", "003", "004"]),
)
def test_formats_of_others_bring_back_what_they_carry(
    tmp_path_factory: pytest.TempPathFactory,
    items: list[tuple[str, str, dict[str, Any]]],
    name: str,
) -> None:
    place = tmp_path_factory.mktemp("trip")
    with Store.init(place / "store").create_session(
        "shop", overrides={"redaction": "off"}
    ) as session:
        for kind, text, fields in items:
            session.add(untyped(kind), text.strip(), agent="veritas", tags=["a.b"], **fields)
        before = [_carried(each, name) for each in session.memories()]
        out = place / ("shop.jsonl" if name == "000" else "out")
        list(session.export(name, to=out))

    again = Store.init(place / "again")
    (again.path / "config.yaml").write_text("format: 1\nredaction: off\n")
    done = Store.open(again.path).import_(out)

    assert done.problems == ()
    with Store.open(again.path).session("shop") as session:
        assert [_carried(each, name) for each in session.memories()] == before


def _carried(memory: Memory, name: str) -> dict[str, object]:
    """Return what of a memory every one of these formats has a place for."""
    fields = {
        key: value
        for key, value in memory.fields.items()
        if key in ("rationale", "custom", "severity", "evidence", "category", "value", "role")
        and not (name == "003" and memory.kind == "turn")
    }
    return {
        "id": memory.id,
        "text": memory.content.strip(),
        "at": memory.created_at,
        "fields": fields,
        "tags": memory.tags if name in ("001", "004") and memory.kind != "turn" else None,
    }


@pytest.mark.parametrize("name", ["jsonl", "003", "bundle"])
def test_what_a_killed_export_left_goes_with_the_next(
    store: Store, tmp_path: Path, name: str
) -> None:
    left = tmp_path / ".out.tmp"
    if name == "003":
        left.mkdir()
        (left / "decisions.yaml").write_text("Use OAuth 2.0")
    else:
        left.write_text("Use OAuth 2.0")
    with _filled(store) as session:
        list(session.export(name, to=tmp_path / "out"))

    assert (tmp_path / "out").exists()
    assert not left.exists()


def test_export_that_fails_leaves_no_half_of_it(store: Store, tmp_path: Path) -> None:
    from smp_git.convert import export as exports

    def torn() -> Iterator[str]:
        yield "half of a memory"
        raise ValueError

    with _filled(store), pytest.raises(ValueError):  # noqa: PT011 - ours
        exports._write(tmp_path / "out", torn())
    assert [each.name for each in tmp_path.iterdir() if "out" in each.name] == []


# What programs of other formats find in an export


def _keys(value: Any, path: str = "") -> set[str]:
    """Return the keys of a mapping and of those in it; the items of a list have one name."""
    if isinstance(value, dict):
        return {f"{path}.{k}" for k in value} | {
            key for k, v in value.items() for key in _keys(v, f"{path}.{k}")
        }
    if isinstance(value, list):
        return {key for each in value for key in _keys(each, f"{path}[]")}
    return set()


# Keys whose names are data, or that an example has and another one has not.
_OF_DATA = re.compile(
    r"topics\.|agents\.|buckets\.|inverted_index\.|topic_index\.|temporal_index\.|entries\.|tags\."
    r"|types\.|\.custom|last_compaction|project_phase|primary_topic|session_type"
)


@pytest.mark.parametrize(
    ("name", "source", "files"),
    [
        ("001", "001/sessions/sess-2026-01-11-abc123", ["manifest.json", "index.json", "conversation.jsonl", "decisions.jsonl", "findings.jsonl", "preferences.jsonl"]),
        ("003", "003/active/session-2026-01-11-abc123", ["metadata.yaml", "decisions.yaml", "findings.yaml", "preferences.yaml", "agent-states/veritas.yaml", "indexes/topics.yaml"]),
        ("004", "004/sessions/sess_20260110_user123", ["metadata.json", "memory.jsonl"]),
    ],
)  # fmt: skip
def test_folder_has_every_key_that_its_description_shows(
    store: Store, tmp_path: Path, name: str, source: str, files: list[str]
) -> None:
    original = ROOT / "tests/data/foreign" / source
    store.import_(original)
    with store.session(store.sessions()[0]) as session:
        session.export(name, to=tmp_path / "out")

    for file in files:
        before, after = (
            {
                key
                for each in _parsed(place / file)
                for key in _keys(each)
                if not _OF_DATA.search(key)
            }
            for place in (original, tmp_path / "out")
        )
        assert before - after == set(), file


def _parsed(path: Path) -> list[Any]:
    text = path.read_text()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return [json.loads(text) if path.suffix == ".json" else read_yaml(text, path.name)]


def test_timeline_has_what_its_description_shows(store: Store, tmp_path: Path) -> None:
    with _filled(store) as session:
        session.export("003", to=tmp_path / "out")

    (timeline,) = _parsed(tmp_path / "out/indexes/timeline.yaml")
    said = timeline["timeline_index"]
    assert {"version", "last_updated", "events", "buckets"} <= said.keys()
    finding = next(each for each in said["events"] if each["ref"] == "FIND-0001")
    assert (finding["type"], finding["discovered_by"], finding["severity"]) == ("finding", "veritas", "critical")  # fmt: skip
    refs = [ref for bucket in said["buckets"].values() for ref in bucket["event_refs"]]
    assert sorted(refs) == sorted(each["ref"] for each in said["events"])


@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the description's own code")
def test_checksums_are_those_of_the_descriptions_own_code(store: Store, tmp_path: Path) -> None:
    with _filled(store) as session:
        session.add(
            "finding", "Zoë — “quoted” \u2028 \x1f é", agent="v", importance=1, **own(ratio=2.50)
        )
        session.export("004", to=tmp_path / "out")
    code = """
const crypto = require("crypto"), fs = require("fs");
let wrong = 0, lines = 0;
for (const line of fs.readFileSync(process.argv[1], "utf8").trim().split("\\n")) {
  const { checksum, ...entry } = JSON.parse(line);
  const canonical = JSON.stringify(entry, Object.keys(entry).sort());
  const hash = crypto.createHash("sha256"); hash.update(canonical);
  wrong += `sha256:${hash.digest("hex")}` !== checksum; lines += 1;
}
console.log(lines, wrong);
"""
    done = subprocess.run(
        ["node", "-e", code, tmp_path / "out/memory.jsonl"], capture_output=True, text=True, check=True
    )  # fmt: skip
    assert done.stdout.split() == ["6", "0"]


def test_priorities_are_told_where_a_format_has_a_place_for_them(
    store: Store, tmp_path: Path
) -> None:
    with store.create_session("shop") as session:
        session.add("decision", "Use OAuth", agent="v")
        session.add("finding", "No MFA", agent="v", importance=0.7)
        now = session.explain("FIND-1")[0]
        list(session.export("000", to=tmp_path / "log.jsonl"))
        session.export("003", to=tmp_path / "out")

    assert [each["priority"] for each in _parsed(tmp_path / "log.jsonl")] == [0.95, 0.7]
    (findings,) = _parsed(tmp_path / "out/findings.yaml")
    decay = findings["findings"][0]["decay"]
    assert (decay["base_priority"], decay["priority"]) == (0.7, round(now, 4))
    again = Store.init(tmp_path / "again")
    again.import_(tmp_path / "out")
    with again.session("shop") as session:
        assert "importance" not in session.get("DEC-1").fields
        assert session.get("FIND-1").fields["importance"] == 0.7


@pytest.mark.parametrize(
    "text",
    [
        "It said:\n## Turn 7 - 2026-01-01 10:00:00\n**Speaker:** x\n\nHello",
        "\\## Turn 1 - as it is written",
        "**Note:** first\n\n---\n\nsecond\n\n---",
        "## Turn 1 - 2026-01-01\n---",
        "ends with\n\n---\n<!-- Conversation continues -->",
    ],
)
def test_text_that_looks_like_the_format_stays_one_turn(
    store: Store, tmp_path: Path, text: str
) -> None:
    with store.create_session("shop") as session:
        session.add(
            "turn", text, agent="ada", tags=["a.b"], **own(model="m"), tokens=15, **own(tools=["x"])
        )
        session.add("turn", "Next", agent="bob")
        session.export("003", to=tmp_path / "out")
    again = Store.init(tmp_path / "again")
    again.import_(tmp_path / "out")

    with again.session("shop") as session:
        first, second = session.memories("turn")
        assert (first.content, second.content) == (text, "Next")
        assert (first.tags, first.fields["model"], first.fields["tokens"]) == (("a.b",), "m", 15)


def test_artifacts_of_one_name_are_two_files(store: Store, tmp_path: Path) -> None:
    with store.create_session("shop") as session:
        for number, name in enumerate(("note.md", "Note.md", "../note.md", "///")):
            session.add("artifact", f"Text {number}\n", name=name, agent="v")
        session.export("003", to=tmp_path / "out")

    texts = {path.read_text() for path in (tmp_path / "out/artifacts").iterdir()}
    assert texts == {f"Text {number}\n" for number in range(4)}


def test_part_of_a_session_comes_in_its_order(store: Store) -> None:
    with store.create_session("shop") as session:
        for number in range(5):
            session.add("finding", "OAuth " * (5 - number), agent="v", severity="low" if number % 2 else "high")  # fmt: skip
        rows = [json.loads(line) for line in session.export(text="OAuth", where=[("severity", "equals", "high")])]  # fmt: skip

    assert [row["id"] for row in rows[1:]] == ["FIND-0001", "FIND-0003", "FIND-0005"]


def test_command_takes_the_options_of_a_query(store: Store) -> None:
    with _filled(store):
        pass
    root = ("--root", store.path, "-s", "shop")

    done = smp(*root, "export", "-w", "severity=critical", "--agent", "veritas", "--not-tag", "x")
    assert [json.loads(line).get("id") for line in done.stdout.splitlines()[1:]] == ["FIND-0001"]
    assert smp(*root, "export", "--user", "Ada", check=False).returncode == 4


def test_store_is_exported_with_its_archives_and_without_names(
    store: Store, tmp_path: Path
) -> None:
    with store.global_session() as shared:
        shared.add("preference", "Grace Hopper likes it", category="c", made_by="Grace Hopper")
    with store.create_session("ada-notes", user="Ada Lovelace") as session:
        session.add("finding", "Ada asked Grace", agent="veritas")
    with store.create_session("shop", user="Ada Lovelace") as session:
        session.add("decision", "Do it", agent="v", links=[("resolves", "ada-notes:FIND-0001")])
    store.archive_session("ada-notes", "done")
    before = store.archived_sessions()[0].text("archived_at")

    text = "".join(store.export(anonymous=True))

    assert not re.findall("Ada|Grace|Hopper|ada-notes", text)
    heads = [
        json.loads(line)["session"]["id"] for line in text.splitlines() if "smp_export" in line
    ]
    assert heads == ["anonymous-1", "anonymous-2", "anonymous-3"]
    assert "User-1 asked User-2" in text
    assert "anonymous-3:FIND-0001" in text
    assert [each.text("archived_at") for each in store.archived_sessions()] == [before]
    rows = [json.loads(line) for line in store.export(kinds=["finding"])]
    assert [row["id"] for row in rows if "id" in row] == ["FIND-0001"]
    smp("--root", store.path, "export", "--all-sessions", "--anonymize", "--format", "003", "-o", tmp_path / "out")  # fmt: skip
    assert len(list((tmp_path / "out/active").iterdir())) == 3


def test_session_that_cannot_be_read_is_named_and_the_others_are_exported(
    store: Store, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        with store.create_session(name) as session:
            session.add("finding", f"In {name}", agent="v")
    shutil.rmtree(store.path / "active/one/.git/objects")

    with pytest.raises(SmpError, match="not in the export: one"):
        store.export("markdown", to=tmp_path / "out")

    assert [path.name for path in (tmp_path / "out").iterdir()] == ["two.md"]
    shutil.rmtree(store.path / "active/one")


def test_values_that_lost_in_a_merge_come_back(store: Store, tmp_path: Path) -> None:
    lost = {"field": "severity", "value": "low", "at": "2026-01-01T00:00:00Z", "replica": "abcd"}
    line = {"kind": "finding", "id": "FIND-0001", "content": "One", "created_at": "2026-01-01T00:00:00Z",
            "agent": "v", "fields": {"severity": "high", "contested": [lost]}}  # fmt: skip
    (tmp_path / "in.jsonl").write_text(json.dumps(line) + "\n")

    assert store.import_(tmp_path / "in.jsonl").problems == ()
    with store.session("in") as session:
        assert session.get("FIND-1").fields["contested"] == [lost]


def test_preferences_of_a_session_come_back(store: Store, tmp_path: Path) -> None:
    with store.create_session("shop", overrides={"language": "da", "custom": {"a": 1}}) as session:
        session.add("finding", "One", agent="v")
        list(session.export(to=tmp_path / "out.jsonl"))
    again = Store.init(tmp_path / "again")
    again.import_(tmp_path / "out.jsonl")

    with again.session("shop") as session:
        assert session.metadata.preferences == {"language": "da", "custom": {"a": 1}}
