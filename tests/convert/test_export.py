"""What is exported can be imported again without loss; what matches, alone; the history, whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smp_git import Memory, Session, Store
from smp_git.errors import AlreadyExistsError, InvalidError
from tests.conftest import Clock
from tests.support import ROOT, git, smp


def _filled(store: Store) -> Session:
    session = store.create_session("shop", user="ada", agents=["veritas"], tags=["login"])
    finding = session.add(
        "finding",
        "No MFA",
        agent="veritas",
        severity="critical",
        tags=["security"],
        custom={"a": 1},
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
            session.add(kind, text, agent="veritas", **dict[str, Any](fields))
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
_REST: dict[str, st.SearchStrategy[Any]] = {
    "decision": st.fixed_dictionaries({}, optional={"rationale": _phrase, "custom": _phrase}),
    "finding": st.fixed_dictionaries(
        {}, optional={"severity": st.sampled_from(["critical", "low"]), "evidence": _phrase}
    ),
    "preference": st.fixed_dictionaries({"category": _phrase}, optional={"value": _phrase}),
    "turn": st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"])}),
}


def _an_item(kind: str) -> st.SearchStrategy[tuple[str, str, Any]]:
    return st.tuples(st.just(kind), _phrase, _REST[kind])


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
            session.add(kind, text.strip(), agent="veritas", tags=["a.b"], **fields)
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
