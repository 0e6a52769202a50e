"""The memory tool of the Anthropic SDK: files of text that a model keeps, with history behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from anthropic.lib.tools import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    ToolError,
)
from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)
from anyio import to_thread

from smp_git.agents.values import Find
from smp_git.model.errors import SmpError
from smp_git.read.values import Key, SeenValues, ValueVersion
from smp_git.session import Session
from smp_git.write.values import Secrets, Writing

_TOP: Final = "/memories"
_ROOT: Final = "anthropic-memory"
_MOST_LINES: Final = 999_999
_WIDTH: Final = len(str(_MOST_LINES))
_DEPTH: Final = 2
_AROUND: Final = 2
_T = TypeVar("_T")


class SmpMemoryTool(BetaAbstractMemoryTool):
    """The memory tool in a session: a file is a value, and each command that changes one a commit.

    What the model deletes stays in the history until maintenance erases it, or is erased
    at once with `erase`, and so is the path that a moved file had. A secret in a file is replaced by a placeholder, unless `secrets`
    says otherwise.
    """

    def __init__(
        self,
        session: Session,
        *,
        agent: str = "claude",
        secrets: Secrets = "redact",
        erase: bool = False,
    ) -> None:
        super().__init__()
        self._values = session.values(agent, secrets=secrets)
        self._erase = erase

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return a file with numbered lines, or what is in a folder."""
        key = _key(command.path)

        def answer(seen: SeenValues) -> str:
            stored = seen.get(key) if len(key) > 1 else None
            if stored is not None:
                return _numbered(command, str(stored.value))
            return _listing(seen, key, command.path)

        return _told(lambda: self._values.read(answer))

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file; one that is there is left as it is."""
        key = _key(command.path)

        def work(now: Writing) -> None:
            if len(key) == 1 or now.get(key) is not None or now.keys(key):
                raise ToolError(f"File {command.path} already exists")
            _check_folders(now, key)
            now.put(key, ready)

        ready = _told(lambda: self._values.prepared(command.file_text))
        _told(lambda: self._values.write(work))
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that is in a file once."""

        def changed(text: str) -> str:
            if command.old_str not in text:
                raise ToolError(
                    f"No replacement was performed, old_str `{command.old_str}` did not appear "
                    f"verbatim in {command.path}."
                )
            if text.count(command.old_str) > 1:
                places = _places(text, command.old_str)
                lines = ", ".join(str(text[:each].count("\n") + 1) for each in places)
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str "
                    f"`{command.old_str}` in lines: {lines}. Please ensure it is unique"
                )
            return text.replace(command.old_str, command.new_str)

        old, new = self._edit(command.path, changed)
        line = old[: old.find(command.old_str)].count("\n")
        lines = new.split("\n")
        shown = range(max(0, line - _AROUND), min(len(lines), line + _AROUND + 1))
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line "
            "numbers):\n" + "\n".join(_line(number + 1, lines[number]) for number in shown)
        )

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines behind one, or at the top."""

        def changed(text: str) -> str:
            lines = text.split("\n")
            if lines[-1] == "":
                lines.pop()
            if not 0 <= command.insert_line <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {command.insert_line}. "
                    f"It should be within the range [0, {len(lines)}]."
                )
            lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
            made = "\n".join(lines)
            return made if made.endswith("\n") else f"{made}\n"

        self._edit(command.path, changed)
        return f"The file {command.path} has been edited."

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a folder with all that is in it."""
        key = _key(command.path)
        if len(key) == 1:
            raise ToolError("Cannot delete the /memories directory itself")
        if not self._clear(key):
            raise ToolError(f"The path {command.path} does not exist")
        return f"Successfully deleted {command.path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file, or a folder with all that is in it."""
        old, new = _key(command.old_path), _key(command.new_path)
        if len(old) == 1:
            raise ToolError("Cannot rename the /memories directory itself")

        def work(now: Writing) -> list[Key]:
            moved = now.keys(old)
            if now.get(new) is not None or now.keys(new):
                raise ToolError(f"The destination {command.new_path} already exists")
            if not moved:
                raise ToolError(f"The path {command.old_path} does not exist")
            if new[: len(old)] == old:
                raise ToolError(f"Cannot move {command.old_path} into itself")
            _check_folders(now, new)
            for key in moved:
                stored = now.get(key)
                if stored is not None:
                    now.put((*new, *key[len(old) :]), stored.value)
                    now.remove(key)
            return moved

        moved = _told(lambda: self._values.write(work))
        if self._erase:
            # Else the old path would tell what is deleted under the new one.
            _told(
                lambda: self._erased(lambda seen: [key for key in moved if seen.get(key) is None])
            )
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        """Delete every file."""
        self._clear((_ROOT,))
        return "All memory cleared"

    def history(self, path: str) -> tuple[ValueVersion, ...]:
        """Return the versions of a file, newest first."""
        return self._values.history(_key(path))

    def _clear(self, key: Key) -> bool:
        if self._erase:
            return _told(lambda: self._erased(lambda seen: seen.keys(key)))
        keys = [each.key for each in self._values.list(key)]
        return bool(keys and _told(lambda: self._values.remove(*keys)))

    def _erased(self, find: Find) -> bool:
        return bool(self._values.erase_found(find, reason="deleted by the model"))

    def _edit(self, path: str, changed: Callable[[str], str]) -> tuple[str, str]:
        """Change a file with nobody in between; return the text before and after."""
        key = _key(path)

        def work(now: Writing) -> tuple[str, str]:
            stored = now.get(key) if len(key) > 1 else None
            if stored is None and (len(key) == 1 or now.keys(key)):
                raise ToolError(f"The path {path} is not a file.")
            if stored is None:
                raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
            old = str(stored.value)
            return old, str(now.put(key, changed(old)).value)

        return _told(lambda: self._values.write(work))


class SmpAsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool for asynchronous clients; it takes what `SmpMemoryTool` takes."""

    def __init__(
        self,
        session: Session,
        *,
        agent: str = "claude",
        secrets: Secrets = "redact",
        erase: bool = False,
    ) -> None:
        super().__init__()
        self._tool = SmpMemoryTool(session, agent=agent, secrets=secrets, erase=erase)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return a file with numbered lines, or what is in a folder."""
        return await to_thread.run_sync(self._tool.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file; one that is there is left as it is."""
        return await to_thread.run_sync(self._tool.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that is in a file once."""
        return await to_thread.run_sync(self._tool.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines behind one, or at the top."""
        return await to_thread.run_sync(self._tool.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a folder with all that is in it."""
        return await to_thread.run_sync(self._tool.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file, or a folder with all that is in it."""
        return await to_thread.run_sync(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        """Delete every file."""
        return await to_thread.run_sync(self._tool.clear_all_memory)


def _told(call: Callable[[], _T]) -> _T:
    """Let the model know in one sentence what the session refuses."""
    try:
        return call()
    except SmpError as error:
        raise ToolError(error.message) from error


def _key(path: str) -> Key:
    """Return the key of a path; raise ToolError for one that leads out of the memories."""
    if path != _TOP and not path.startswith(f"{_TOP}/"):
        raise ToolError(f"Path must start with /memories, got: {path}")
    parts: list[str] = []
    for part in path.removeprefix(_TOP).split("/"):
        if part == ".." and not parts:
            raise ToolError(f"Path {path} would escape /memories directory")
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return (_ROOT, *parts)


def _check_folders(now: Writing, key: Key) -> None:
    """Raise ToolError if a file is where a folder is needed."""
    for end in range(2, len(key)):
        if now.get(key[:end]) is not None:
            raise ToolError(f"{_TOP}/{'/'.join(key[1:end])} is a file, not a directory")


def _numbered(command: BetaMemoryTool20250818ViewCommand, text: str) -> str:
    lines = text.split("\n")
    if len(lines) > _MOST_LINES:
        raise ToolError(f"File {command.path} exceeds maximum line limit of 999,999 lines.")
    first, last = 1, len(lines)
    if command.view_range and len(command.view_range) == 2:  # noqa: PLR2004 - from and to
        first = max(1, command.view_range[0])
        last = len(lines) if command.view_range[1] == -1 else command.view_range[1]
    shown = "\n".join(
        _line(first + place, line) for place, line in enumerate(lines[first - 1 : last])
    )
    return f"Here's the content of {command.path} with line numbers:\n{shown}"


def _line(number: int, text: str) -> str:
    return f"{number:>{_WIDTH}}\t{text}"


def _listing(seen: SeenValues, key: Key, path: str) -> str:
    """Return what is in a folder, two levels deep; a folder is as large as what is in it."""
    sizes: dict[Key, int] = {}
    files: set[Key] = set()
    for stored in seen.items(key):
        inner = stored.key[len(key) :]
        if any(part.startswith(".") for part in inner):
            continue
        size = len(str(stored.value).encode())
        for depth in range(len(inner) + 1):
            sizes[inner[:depth]] = sizes.get(inner[:depth], 0) + size
        files.add(inner)
    if not sizes and len(key) > 1:
        raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
    rows = [f"{_size(sizes.get((), 0))}\t{path}"]
    for inner in sorted(each for each in sizes if 0 < len(each) <= _DEPTH):
        end = "" if inner in files else "/"
        rows.append(f"{_size(sizes[inner])}\t{path}/{'/'.join(inner)}{end}")
    head = (
        f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    )
    return "\n".join((head, *rows))


def _size(count: int) -> str:
    unit = min(max(count.bit_length() - 1, 0) // 10, 3)
    number = count / 1024**unit
    return f"{number:.0f}{'BKMG'[unit]}" if number == int(number) else f"{number:.1f}{'BKMG'[unit]}"


def _places(text: str, wanted: str) -> Iterator[int]:
    place = text.find(wanted)
    while place >= 0:
        yield place
        place = text.find(wanted, place + 1)
