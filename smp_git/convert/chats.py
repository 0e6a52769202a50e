"""Conversations of people with assistants: Claude Code's transcripts, exports of ChatGPT and Claude."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Final

from smp_git.convert import transcripts
from smp_git.convert.entries import (
    ForeignMemory,
    ForeignSession,
    Item,
    PassedOver,
    Trouble,
    as_text,
    as_time,
    made,
)
from smp_git.convert.files import JsonRow, is_plain, json_lines, json_list, member

_CHATS: Final = "conversations.json"
_LONGEST_TITLE: Final = 120


# Claude Code


def read_transcripts(path: Path) -> Iterator[ForeignSession]:
    """Yield the conversations of a transcript, or of all transcripts in a folder and below."""
    files = [path] if path.is_file() else sorted(path.rglob("*.jsonl"))
    for file in files:
        if is_plain(file) and (path.is_file() or looks_like_transcript(file)):
            yield _transcript(file)


def looks_like_transcript(file: Path) -> bool:
    """Whether one of the first lines is of a transcript."""
    rows = (row for row in islice(json_lines(file, file.name), 20) if isinstance(row, JsonRow))
    return any(is_transcript(row.value) for row in rows)


def is_transcript(value: Mapping[str, object]) -> bool:
    """Whether a line is of a transcript."""
    said = value.get("type")
    return ("sessionId" in value and isinstance(said, str)) or (
        said == "summary" and "leafUuid" in value
    )


def _transcript(file: Path) -> ForeignSession:
    first = {}
    for row in islice(json_lines(file, file.name), 50):
        if isinstance(row, JsonRow):
            for name in ("sessionId", "cwd", "gitBranch", "version"):
                if row.value.get(name) and name not in first:
                    first[name] = as_text(row.value[name])
    context: dict[str, object] = {}
    if cwd := first.get("cwd"):
        context["project_name"] = cwd.rstrip("/").rpartition("/")[2] or cwd
        context["folder"] = cwd
    if branch := first.get("gitBranch"):
        context["git_branch"] = branch
    return ForeignSession(
        format=transcripts.FORMAT,
        id=first.get("sessionId") or file.stem,
        items=_turns(file),
        agents=("claude",),
        context=context,
    )


def _turns(file: Path) -> Iterator[Item]:
    seen = set[str]()
    for row in json_lines(file, file.name):
        if isinstance(row, Trouble):
            yield row
            continue
        name = as_text(row.value.get("uuid"))
        if name and name in seen:
            yield PassedOver("lines that stand twice")
            continue
        seen.add(name)
        yield turn_of(row.value, row.where)


def turn_of(value: Mapping[str, object], where: str) -> Item:
    """Return the turn of a line of a transcript, or what it is instead."""
    said = transcripts.said(value)
    if isinstance(said, str):
        return PassedOver(said)
    message = value["message"]
    model = message.get("model") if isinstance(message, dict) else None
    raw: dict[str, object] = {
        "role": said.role,
        "conversation_id": value.get("sessionId"),
        "parent": value.get("parentUuid"),
        "speaker": "user" if said.role == "user" else None,
        "tools": list(said.tools) or None,
        "model": model if said.role == "assistant" else None,
    }
    return made(
        "turn",
        value.get("uuid"),
        said.text,
        raw,
        where=where,
        agent="claude" if said.role == "assistant" else "user",
        at=value.get("timestamp"),
    )


# Exports of an account


@contextmanager
def _list_in(path: Path) -> Iterator[tuple[IO[bytes], str]]:
    """Open the list of conversations: the file itself, one in a folder, or one in a zip."""
    if path.is_dir():
        path = path / _CHATS
    if path.suffix.lower() == ".zip":
        with member(path, _CHATS) as file:
            yield file, f"{path.name}/{_CHATS}"
        return
    with path.open("rb") as file:
        yield file, path.name


def first_of(path: Path) -> Mapping[str, object]:
    """Return the first conversation of an export, empty if there is none."""
    with _list_in(path) as (file, shown):
        for row in islice(json_list(file, shown), 5):
            if isinstance(row, JsonRow):
                return row.value
    return {}


def read_chatgpt(path: Path) -> Iterator[ForeignSession]:
    """Yield the conversations of an export of ChatGPT."""
    with _list_in(path) as (file, shown):
        for row in json_list(file, shown):
            if isinstance(row, Trouble):
                yield _broken("chatgpt", row)
                continue
            value = row.value
            name = as_text(value.get("conversation_id") or value.get("id") or row.where)
            yield ForeignSession(
                format="chatgpt",
                id=name,
                items=_of_chatgpt(value, row.where),
                agents=("chatgpt",),
                created_at=as_time(value.get("create_time")),
                context=_titled(value.get("title")),
            )


def _broken(name: str, trouble: Trouble) -> ForeignSession:
    return ForeignSession(format=name, id="", items=iter((trouble,)))


def _titled(title: object) -> dict[str, object]:
    return {"title": as_text(title)[:_LONGEST_TITLE]} if title else {}


def _of_chatgpt(value: Mapping[str, object], where: str) -> Iterator[Item]:
    mapping = value.get("mapping")
    nodes = mapping if isinstance(mapping, dict) else {}
    if not nodes:
        yield Trouble(where=where, reason="the conversation has no messages")
    main = _branch(nodes, value.get("current_node"))
    found = [
        (key, message)
        for key, node in nodes.items()
        if isinstance(node, dict) and isinstance(message := node.get("message"), dict)
    ]
    found.sort(key=lambda each: _seconds(each[1].get("create_time")))
    for key, message in found:
        parent = nodes[key].get("parent")
        tags = () if key in main or not main else ("other-branch",)
        yield _chatgpt_turn(key, message, parent, tags, f"{where}.{key}")


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _branch(nodes: Mapping[str, object], last: object) -> set[str]:
    """Return the messages that the conversation ended with, from the last one up."""
    out = set[str]()
    while isinstance(last, str) and last not in out and isinstance(node := nodes.get(last), dict):
        out.add(last)
        last = node.get("parent")
    return out


def _chatgpt_turn(
    key: str, message: Mapping[str, object], parent: object, tags: tuple[str, ...], where: str
) -> Item:
    author = message.get("author")
    role = as_text(author.get("role") if isinstance(author, dict) else "")
    if role not in ("user", "assistant"):
        return PassedOver(f"messages of {role or 'nobody'}")
    content = message.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    text = "\n\n".join(part for part in parts or () if isinstance(part, str) and part.strip())
    if not text and isinstance(content, dict) and isinstance(content.get("text"), str):
        text = as_text(content["text"])
    if not text.strip():
        return PassedOver("messages without text")
    raw: dict[str, object] = {"role": role, "parent": parent}
    if role == "user":
        raw["speaker"] = "user"
    about = message.get("metadata")
    if isinstance(about, dict) and about.get("model_slug"):
        raw["model"] = about["model_slug"]
    return made(
        "turn",
        message.get("id") or key,
        text,
        raw,
        where=where,
        agent="chatgpt" if role == "assistant" else "user",
        at=message.get("create_time"),
        tags=tags,
    )


def read_claude(path: Path) -> Iterator[ForeignSession]:
    """Yield the conversations of an export of Claude."""
    with _list_in(path) as (file, shown):
        for row in json_list(file, shown):
            if isinstance(row, Trouble):
                yield _broken("claude", row)
                continue
            value = row.value
            yield ForeignSession(
                format="claude",
                id=as_text(value.get("uuid") or row.where),
                items=_of_claude(value, row.where),
                agents=("claude",),
                created_at=as_time(value.get("created_at")),
                context=_titled(value.get("name")),
            )


def _of_claude(value: Mapping[str, object], where: str) -> Iterator[Item]:
    messages = value.get("chat_messages")
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        place = f"{where}.{number + 1}"
        if isinstance(message, dict):
            yield _claude_turn(message, place)
        else:
            yield Trouble(where=place, reason="not a message")


def _claude_turn(message: Mapping[str, object], where: str) -> ForeignMemory | PassedOver:
    texts, tools = transcripts.parts(message.get("content"))
    text = "\n\n".join(texts) or as_text(message.get("text"))
    attached = message.get("attachments")
    for each in attached if isinstance(attached, list) else ():
        if isinstance(each, dict) and each.get("extracted_content"):
            text += f"\n\n[{as_text(each.get('file_name'))}]\n{as_text(each['extracted_content'])}"
    if not text.strip():
        return PassedOver("messages without text")
    human = message.get("sender") == "human"
    raw: dict[str, object] = {"role": "user" if human else "assistant"}
    if human:
        raw["speaker"] = "user"
    if tools:
        raw["tools"] = list(tools)
    parent = message.get("parent_message_uuid")
    return made(
        "turn",
        message.get("uuid"),
        text,
        {**raw, "parent": parent},
        where=where,
        agent="user" if human else "claude",
        at=message.get("created_at"),
    )
