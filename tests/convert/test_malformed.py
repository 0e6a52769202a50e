"""Whatever a file holds: a report or a clear refusal, bounded memory, nothing half written."""

from __future__ import annotations

import json
import os
import re
import tarfile
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from smp_git import SmpError, Store
from tests.support import PEAK, python, smp

GOOD = '{"id":"m1","type":"finding","ts":"2026-01-11T14:30:00Z","data":{"issue":"A good line"}}\n'


def _log(text: str | bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / "log.jsonl"
        path.write_bytes(GOOD.encode() + (text.encode() if isinstance(text, str) else text))
        return path

    return write


def _line(**fields: object) -> str:
    return (
        json.dumps({"id": "m2", "type": "finding", "ts": "2026-01-11T14:31:00Z", **fields}) + "\n"
    )


def _session(name: str, text: str | bytes) -> Callable[[Path], Path]:
    """Return what makes a session folder of YAML with one more file in it."""

    def write(folder: Path) -> Path:
        place = folder / "session-1"
        (place / "agent-states").mkdir(parents=True)
        (place / "metadata.yaml").write_text('session:\n  id: "session-1"\n')
        (place / "findings.yaml").write_text(
            'findings:\n  - id: "FIND-001"\n    finding: "A good line"\n'
        )
        (place / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return place

    return write


ONE_GOOD = {
    "torn last line": _log('{"id": "m2", "type": "find'),
    "line that is no JSON": _log("not json\n"),
    "line that is a list": _log("[1, 2]\n"),
    "line that is a number": _log("17\n"),
    "line of NUL": _log(b"\0" * 4096 + b"\n"),
    "line that is no UTF-8": _log(b'{"id": "m2\xff"}\n'),
    "UTF-16": _log('{"id": "m2"}\n'.encode("utf-16")),
    "no type": _log(_line(type=None, data={"issue": "x"})),
    "type nobody knows": _log(_line(type="dream", data={"issue": "x"})),
    "data that is text": _log(_line(data="text")),
    "data that is empty": _log(_line(data={})),
    "text that is a mapping": _log(_line(data={"issue": {"a": [1]}})),
    "text of a megabyte and more": _log(_line(data={"issue": "x" * 1_100_000})),
    "nested a thousand deep": _log('{"id":' + "[" * 1000 + "]" * 1000 + "}\n"),
    "nested a hundred thousand deep": _log('{"id":' + "[" * 100_000 + "]" * 100_000 + "}\n"),
    "line of 40 megabytes": _log(_line(data={"issue": "x" * 40_000_000})),
    "blank lines": _log("\n\n  \n\r\n"),
    "CRLF and a byte order mark": _log(b"\r\n\xef\xbb\xbf\r\n"),
    "broken YAML": _session("decisions.yaml", "decisions: [\n"),
    "YAML with a tab": _session("decisions.yaml", "decisions:\n\t- id: x\n"),
    "YAML bomb": _session("decisions.yaml", "a: &a [x, x]\nb: &b [*a, *a]\ndecisions: [*b, *b]\n"),
    "YAML that makes objects": _session("decisions.yaml", "decisions: !!python/object:os.system\n"),
    "YAML with a key twice": _session("decisions.yaml", "decisions: []\ndecisions: []\n"),
    "YAML of two documents": _session("decisions.yaml", "decisions: []\n---\ndecisions: []\n"),
    "list that is a mapping": _session("decisions.yaml", "decisions: {a: b}\n"),
    "items that are texts": _session("decisions.yaml", "decisions: [one, two]\n"),
    "item without text": _session("decisions.yaml", "decisions:\n  - id: DEC-1\n"),
    "YAML that is no UTF-8": _session("decisions.yaml", b"decisions: \xff\n"),
    "conversation without turns": _session("conversation.md", "Just words.\n"),
    "turn without text": _session(
        "conversation.md", "## Turn 1 - 2026-01-11 14:30:00\n**Speaker:** user\n\n---\n"
    ),
    "turn at no time": _session("conversation.md", "## Turn 1 - never\n**Speaker:** a\n\nHello\n"),
    "metadata that is no mapping": _session("metadata.yaml", "- a\n"),
    "agent with no name": _session("agent-states/.yaml", "agent_state: {agent_id: '???'}\n"),
    "state that is a list": _session("agent-states/a.yaml", "agent_state: [1]\n"),
}


@pytest.mark.parametrize("make", ONE_GOOD.values(), ids=list(ONE_GOOD))
def test_the_rest_is_taken_in(store: Store, tmp_path: Path, make: Callable[[Path], Path]) -> None:
    done = store.import_(make(tmp_path))

    with store.session(done.sessions[0].session) as session:
        assert session.memories("finding")[0].content == "A good line"
    for problem in done.problems:
        assert problem.where
        assert problem.reason
        assert "Traceback" not in problem.reason


def test_what_could_not_be_read_is_named_with_its_line(store: Store, tmp_path: Path) -> None:
    done = store.import_(_log("nonsense\n" + _line(type="dream", data={}))(tmp_path))

    assert [each.as_json()["line"] for each in done.problems] == [2, 3]
    assert {each.as_json()["file"] for each in done.problems} == {"log.jsonl"}


def _zip(members: dict[str, bytes]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return folder / "a.zip"

    return write


def _bytes(name: str, data: bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return write


def _fifo(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.jsonl")
    return folder / "pipe.jsonl"


REFUSED: dict[str, Callable[[Path], Path]] = {
    "nothing there": lambda folder: folder / "none",
    "empty file": _bytes("a.jsonl", b""),
    "empty folder": lambda folder: folder,
    "picture": _bytes("a.png", b"\x89PNG\r\n\x1a\n" + bytes(100)),
    "zip that is none": _bytes("a.zip", b"PK\x03\x04 torn"),
    "zip without conversations": _zip({"a.txt": b"x"}),
    "zip bomb": _zip({"conversations.json": b"[" + b" " * 300_000_000 + b"]"}),
    "zip that leads outside": _zip({"../../conversations.txt": b"[]"}),
    "JSON of something else": _bytes("a.json", b'{"name": "package"}'),
    "JSON that is torn": _bytes("a.json", b'{"smp_export": 1, "memories": ['),
    "YAML of something else": _bytes("a.yaml", b"services: {}\n"),
    "named pipe": _fifo,
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=list(REFUSED))
def test_what_holds_no_memory_is_refused_in_a_sentence(
    store: Store, tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    place = tmp_path / "in"
    place.mkdir()

    with pytest.raises(SmpError) as raised:
        store.import_(make(place))

    assert raised.value.hint or raised.value.message
    assert store.sessions() == ()


def test_links_out_of_a_folder_are_not_followed(store: Store, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("A secret of another project.\n")
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "note.md").write_text("Mine.\n")
    (vault / "link.md").symlink_to(outside)
    (vault / "loop").symlink_to(vault)

    done = store.import_(vault)

    assert done.added == 1
    with store.session("notes-vault") as session:
        assert not session.query("secret").hits


def test_archive_of_a_session_leads_nowhere_else(store: Store, tmp_path: Path) -> None:
    place = tmp_path / "sessions/archived/session-1"
    place.mkdir(parents=True)
    with tarfile.open(place / "archive.tar.gz", "w:gz") as tar:
        for name, data in {
            "../evil.md": b"x",
            "/tmp/smp-evil.md": b"x",
            "session-1/metadata.yaml": b"session: {id: session-1}\n",
            "session-1/findings.yaml": b"findings:\n- {id: FIND-1, finding: Kept}\n",
        }.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, BytesIO(data))
        link = tarfile.TarInfo("session-1/decisions.yaml")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)

    done = store.import_(tmp_path / "sessions")

    assert done.added == 1
    assert not Path("/tmp/smp-evil.md").exists()


def test_references_in_a_circle_and_a_hundred_thousand_of_them(
    store: Store, tmp_path: Path
) -> None:
    folder = tmp_path / "sess_1"
    folder.mkdir()
    (folder / "metadata.json").write_text("{}")
    rows = [
        {
            "id": f"mem_{n}",
            "type": "finding",
            "timestamp": "2026-01-10T10:00:00Z",
            "content": {"finding": f"Finding {n}"},
            "references": [f"mem_{(n + 1) % 3}"] + [f"none_{k}" for k in range(33_000)],
        }
        for n in range(3)
    ]
    (folder / "memory.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    done = store.import_(folder)

    assert done.added == 3
    with store.session("sess_1") as session:
        assert [len(each.links) for each in session.memories()] == [1, 1, 1]


def _chat(number: int, text: str = "Hello") -> dict[str, object]:
    message = {
        "author": {"role": "user"},
        "content": {"parts": [text]},
        "create_time": 1_767_225_600.0,
    }
    return {"conversation_id": f"c-{number}", "mapping": {"n": {"message": message}}}


@pytest.mark.parametrize(
    ("torn", "why"),
    [
        (lambda text: text.replace('"c-2"', '"c-2" oops'), "not JSON|Expecting|delimiter"),
        (lambda text: text.replace("Hello 2", '\\" ] } \\u12zz'), "escape"),
        (lambda text: text.replace('"Hello 2"', "[" * 100_000 + "]" * 100_000), "too deep|limit"),
        (lambda text: text.replace('"Hello 2"', '"' + "x" * 40_000_000 + '"'), "longer|1,048,576"),
        (lambda text: text.replace('{"conversation_id": "c-2"', '17, {"conversation_id": "c-2"'), "not a JSON object"),
    ],
    ids=["not JSON", "wrong escape", "nested deep", "40 megabytes", "a number"],
)  # fmt: skip
def test_conversations_behind_one_that_cannot_be_read_come_in(
    store: Store, tmp_path: Path, torn: Callable[[str], str], why: str
) -> None:
    text = json.dumps([_chat(number, f"Hello {number}") for number in (1, 2, 3)])
    (tmp_path / "conversations.json").write_text(torn(text))

    done = store.import_(tmp_path / "conversations.json")

    assert {"chatgpt-c-1", "chatgpt-c-3"} <= set(store.sessions())
    assert [each.where.startswith("conversations.json[2]") for each in done.problems] == [True]
    assert re.search(why, done.problems[0].reason)
    assert "chatgpt-c-2" not in store.sessions() or "number" in why or why == "not a JSON object"


def test_zip_that_is_damaged_gives_what_can_be_read(store: Store, tmp_path: Path) -> None:
    rows = [_chat(number, os.urandom(30_000).hex()) for number in range(40)]
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps(rows))
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[len(data) // 2] ^= 0xFF
    (tmp_path / "a.zip").write_bytes(data)

    done = store.import_(tmp_path / "a.zip")

    assert 0 < done.added < 40
    assert "cannot be read as a zip" in done.problems[-1].reason


def test_file_in_utf_16_is_told_once(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(GOOD * 3, "utf-16")

    done = store.import_(path, as_format="000")

    assert [each.reason for each in done.problems] == ["the file is UTF-16; save it as UTF-8"]


def test_file_names_that_are_not_utf_8(store: Store, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "new\nline.md").write_text("# One\n")
    Path(os.fsdecode(os.fsencode(vault) + b"/\xff.md")).write_text("# Two\n")
    Path(os.fsdecode(os.fsencode(vault) + b"/\xfe.md")).write_bytes(b"\xff not UTF-8\n")

    done = smp("--root", store.path, "import", vault)

    assert done.stdout == "notes-vault: imported 2 artifacts\n"
    assert "not UTF-8" in done.stderr
    assert store.import_(vault).added == 0


_MEASURE = """
import sys
from smp_git import Store
store = Store.init(sys.argv[1])
store.import_(sys.argv[2])
print(peak_kilobytes())
"""


@pytest.mark.slow
def test_two_hundred_megabytes_of_transcripts_need_little_memory(tmp_path: Path) -> None:
    folder = tmp_path / "projects"
    folder.mkdir()
    said = "word " * 200
    noise = "x" * 20_000
    for number in range(40):
        with (folder / f"{number}.jsonl").open("w") as file:
            for line in range(240):
                kind = "user" if line % 2 else "assistant"
                content: object = (
                    f"{line} {said}" if line % 3 else [{"type": "tool_result", "content": noise}]
                )
                row = {
                    "type": kind,
                    "uuid": f"{number}-{line}",
                    "sessionId": f"s-{number}",
                    "timestamp": "2026-03-01T09:00:00Z",
                    "toolUseResult": noise,
                    "message": {"role": kind, "content": content},
                }
                file.write(json.dumps(row) + "\n")
    assert sum(path.stat().st_size for path in folder.iterdir()) > 190_000_000

    done = python(PEAK + _MEASURE, tmp_path / "store", folder)

    assert int(done.stdout) * 1024 < 300_000_000
