"""Exports of accounts: the conversations of ChatGPT and Claude, and what Claude keeps beside them."""

from __future__ import annotations

import re
import zipfile
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
from smp_git.convert.files import JsonRow, JsonRows, is_plain, json_list, member, members
from smp_git.model.errors import InvalidError

# A large account is exported in several files.
_CHATS: Final = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")
# Claude's notes of a person, and the projects with their documents: one file, or one for each.
_BESIDE: Final = re.compile(
    r"(?:.*/)?(?:memories\.json|memories/[^/]+\.json|projects\.json|projects/[^/]+\.json)"
)
_NOTED: Final = "What Claude noted"
_SNIFFED: Final = 5
_LONGEST_TITLE: Final = 120


def is_export(path: Path) -> bool:
    """Whether a folder or a zip holds files that an export of an account has."""
    return bool(_files(path, _CHATS) or _files(path, _BESIDE))


def format_of(path: Path) -> str | None:
    """Return whose export it is, by the first conversations or what stands beside them."""
    first = (*islice(_rows(path, _CHATS), _SNIFFED), *islice(_rows(path, _BESIDE), _SNIFFED))
    found = (_whose(row.value) for row in first if isinstance(row, JsonRow))
    return next((name for name in found if name), None)


def _whose(value: Mapping[str, object]) -> str | None:
    if "mapping" in value:
        return "chatgpt"
    is_claude = "chat_messages" in value or _is_memory(value) or _is_project(value)
    return "claude" if is_claude else None


def _is_memory(value: Mapping[str, object]) -> bool:
    return "conversations_memory" in value or "project_memories" in value


def _is_project(value: Mapping[str, object]) -> bool:
    return "docs" in value and "prompt_template" in value


def _files(path: Path, wanted: re.Pattern[str]) -> list[str]:
    """Return the files of one sort in a folder or a zip, by their names; a file is of every sort."""
    if path.is_dir():
        found = (*path.glob("*.json"), *path.glob("*/*.json"))
        names = [each.relative_to(path).as_posix() for each in found if is_plain(each)]
    elif zipfile.is_zipfile(path):
        names = members(path)
    else:
        return [path.name]
    return sorted(name for name in names if wanted.fullmatch(name))


@contextmanager
def _open(path: Path, name: str) -> Iterator[IO[bytes]]:
    if path.is_file() and zipfile.is_zipfile(path):
        with member(path, name) as file:
            yield file
        return
    with (path / name if path.is_dir() else path).open("rb") as file:
        yield file


def _rows(path: Path, wanted: re.Pattern[str]) -> JsonRows:
    for name in _files(path, wanted):
        shown = name if path.name == name else f"{path.name}/{name}"
        with _open(path, name) as file:
            yield from json_list(file, shown)


def _read(path: Path, wanted: re.Pattern[str]) -> JsonRows:
    """Yield the rows as far as they can be read."""
    try:
        yield from _rows(path, wanted)
    except InvalidError as error:
        yield Trouble(where=path.name, reason=error.message)


def _broken(name: str, trouble: Trouble) -> ForeignSession:
    return ForeignSession(format=name, id="", items=iter((trouble,)))


def _titled(title: object) -> dict[str, object]:
    return {"title": as_text(title)[:_LONGEST_TITLE]} if title else {}


# ChatGPT


def read_chatgpt(path: Path) -> Iterator[ForeignSession]:
    """Yield the conversations of an export of ChatGPT."""
    for row in _read(path, _CHATS):
        if isinstance(row, Trouble):
            yield _broken("chatgpt", row)
            continue
        value = row.value
        yield ForeignSession(
            format="chatgpt",
            id=as_text(value.get("conversation_id") or value.get("id") or row.where),
            items=_of_chatgpt(value, row.where),
            agents=("chatgpt",),
            created_at=as_time(value.get("create_time")),
            context=_titled(value.get("title")),
        )


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


# Claude


def read_claude(path: Path) -> Iterator[ForeignSession]:
    """Yield the conversations of an export of Claude, and what it kept beside them."""
    for row in _read(path, _CHATS):
        if isinstance(row, Trouble):
            yield _broken("claude", row)
        elif "chat_messages" in row.value:
            yield ForeignSession(
                format="claude",
                id=as_text(row.value.get("uuid") or row.where),
                items=_of_claude(row.value, row.where),
                agents=("claude",),
                created_at=as_time(row.value.get("created_at")),
                context=_titled(row.value.get("name")),
            )
    if any(_whose(row.value) for row in _beside(path) if isinstance(row, JsonRow)):
        yield ForeignSession(
            format="claude", id="account", agents=("claude",), items=_of_account(path)
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


def _beside(path: Path) -> JsonRows:
    """Yield what an export of Claude has beside conversations."""
    for row in _read(path, _BESIDE):
        if isinstance(row, Trouble) or "chat_messages" not in row.value:
            yield row


def _of_account(path: Path) -> Iterator[Item]:
    for row in _beside(path):
        if isinstance(row, Trouble):
            yield row
        elif _is_memory(row.value):
            yield from _memories(row)
        elif _is_project(row.value):
            yield from _project(row)
        else:
            yield PassedOver("objects that are no memory and no project")


def _memories(row: JsonRow) -> Iterator[Item]:
    """Yield what Claude noted of a person, in general and for each project."""
    whose = as_text(row.value.get("account_uuid")) or "account"
    told = row.value.get("project_memories")
    texts = {"": row.value.get("conversations_memory"), **(told if isinstance(told, dict) else {})}
    for project, text in texts.items():
        if isinstance(text, str) and text.strip():
            raw = {"title": _NOTED, "project": project or None}
            name = "/".join(filter(None, ("memory", whose, project)))
            yield made("learning", name, text, raw, where=row.where, agent="claude")


def _project(row: JsonRow) -> Iterator[Item]:
    """Yield what a project says of itself, and its documents."""
    value, about = row.value, as_text(row.value.get("name"))
    name = f"project/{as_text(value.get('uuid')) or row.where}"
    said = [as_text(value.get(key)).strip() for key in ("description", "prompt_template")]
    at, raw = value.get("created_at"), {"title": about or name, "type": "project"}
    yield made("artifact", name, "\n\n".join(filter(None, said)), raw, where=row.where, at=at)
    docs = value.get("docs")
    for number, doc in enumerate(docs if isinstance(docs, list) else ()):
        if isinstance(doc, dict):
            file = as_text(doc.get("filename")) or f"document {number + 1}"
            yield made(
                "artifact",
                f"{name}/{as_text(doc.get('uuid')) or file}",
                doc.get("content"),
                {"title": file, "name": file, "type": "document", "project": about or None},
                where=row.where,
                at=doc.get("created_at"),
                links=[("part_of", name)],
            )
