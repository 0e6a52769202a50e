"""Installation into Claude Code: its settings, commands and skill, and their removal."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from smp_git.git.disk import replace_file
from smp_git.integrations.claude_code.calls import EVENTS
from smp_git.model.errors import InvalidError, StorageError

PLUGIN: Final = Path(__file__).parent / "plugin"
# By this a hook of ours is known, whatever program and session it names.
_MARK: Final = " claude "
_FOLDER: Final = ".claude"
_COPIED: Final = (
    "commands/remember.md",
    "commands/recall.md",
    "commands/forget.md",
    "skills/smp-memory/SKILL.md",
)


class InstalledFile(NamedTuple):
    """A file as it is and as it shall be; None where there is none."""

    path: Path
    before: str | None
    after: str | None


def installed(folder: Path, call: Sequence[str]) -> list[InstalledFile]:
    """Return how the files below a `.claude` folder change; what others put there stays."""
    settings = folder / "settings.json"
    hooks = json.loads((PLUGIN / "hooks/hooks.json").read_text())["hooks"]
    known = _settings(settings)
    merged = {**_without(known.get("hooks", {}))}
    for event, entries in hooks.items():
        merged[event] = [*merged.get(event, []), *_calling(entries, call)]
    changes = [InstalledFile(settings, _text(settings), _json({**known, "hooks": merged}))]
    for name in _COPIED:
        path = folder / name
        changes.append(InstalledFile(path, _text(path), (PLUGIN / name).read_text("utf-8")))
    return [each for each in changes if each.before != each.after]


def removed(folder: Path) -> list[InstalledFile]:
    """Return how the files change when all that was installed goes."""
    settings = folder / "settings.json"
    changes = []
    if settings.exists():
        known = _settings(settings)
        hooks = _without(known.get("hooks", {}))
        rest = {name: value for name, value in known.items() if name != "hooks"}
        left = {**rest, **({"hooks": hooks} if hooks else {})}
        if left != known:
            changes.append(InstalledFile(settings, _text(settings), _json(left) if left else None))
    for name in _COPIED:
        path = folder / name
        if path.exists():
            changes.append(InstalledFile(path, _text(path), None))
    return changes


def write(changes: Sequence[InstalledFile]) -> None:
    """Write the files, each whole or not at all, and drop folders that are left empty."""
    for path, _, after in changes:
        try:
            if after is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                replace_file(path, after.encode(), path.with_name(f".{path.name}.smp"))
                continue
            path.unlink(missing_ok=True)
            for folder in path.parents:
                if folder.is_dir() and not any(folder.iterdir()):
                    folder.rmdir()
                if folder.name == _FOLDER:
                    break
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}") from None


def _settings(path: Path) -> dict[str, Any]:
    text = _text(path)
    try:
        known = json.loads(text) if text and text.strip() else {}
    except ValueError as error:
        raise InvalidError(f"{path} is not JSON: {error}", hint="mend it first") from None
    hooks = known.get("hooks", {}) if isinstance(known, dict) else None
    if not isinstance(hooks, dict) or not all(isinstance(each, list) for each in hooks.values()):
        raise InvalidError(f"{path} is not a settings file of Claude Code", hint="mend it first")
    return dict(known)


def _text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8") if path.exists() else None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(f"cannot read {path}: {error}") from None


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _calling(entries: Sequence[Mapping[str, Any]], call: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the entries of an event with the program and the session that are meant here."""
    program, *rest = call
    for entry in entries:
        hooks = []
        for hook in entry["hooks"]:
            _, name, event = hook["command"].split()
            command = shlex.join([program, name, event, *rest])
            hooks.append({**hook, "command": command})
        yield {**entry, "hooks": hooks}


def _without(hooks: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return hooks without ours; an event without any goes."""
    out = {}
    for event, entries in hooks.items():
        kept = [left for entry in entries if (left := _entry_without(entry)) is not None]
        if kept:
            out[event] = kept
    return out


def _entry_without(entry: Any) -> Any:  # noqa: ANN401 - somebody else's JSON
    hooks = entry.get("hooks") if isinstance(entry, dict) else None
    if not isinstance(hooks, list):
        return entry
    kept = [hook for hook in hooks if not _is_ours(hook)]
    return {**entry, "hooks": kept} if kept else None


def _is_ours(hook: object) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    if not isinstance(command, str) or _MARK not in command:
        return False
    program, _, rest = command.partition(_MARK)
    return Path(program.strip("'\"")).name in ("smp", "git-smp") and rest.split()[0] in EVENTS
