"""The commands: their groups, in the order of the help, and the room each lives in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# What a newcomer meets first comes first.
GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "Start": {
        "demo": "demo",
        "init": "sessions",
        "new": "sessions",
        "use": "sessions",
        "sessions": "sessions",
        "status": "sessions",
        "info": "sessions",
        "report": "web",
        "claude": "agents",
        "mcp": "agents",
    },
    "Write": {
        "add": "write",
        "edit": "write",
        "resolve": "write",
        "supersede": "write",
        "pin": "write",
        "unpin": "write",
        "link": "write",
        "state": "write",
    },
    "Ask": {
        "list": "listing",
        "show": "listing",
        "query": "ask",
        "similar": "ask",
        "related": "ask",
        "context": "ask",
        "prepare": "agents",
        "watch": "ask",
        "topics": "overviews",
        "timeline": "overviews",
        "agents": "overviews",
        "summary": "overviews",
        "aggregate": "overviews",
        "explain": "ask",
        "index": "ask",
    },
    "History": {
        "log": "history",
        "diff": "history",
        "blame": "history",
        "undo": "undo",
        "rollback": "undo",
        "bisect": "bisect",
        "tag": "branches",
    },
    "By hand": {
        "path": "listing",
        "commit": "undo",
    },
    "Branches": {
        "branch": "branches",
        "switch": "branches",
        "merge": "branches",
        "conflicts": "branches",
        "resolve-conflict": "branches",
    },
    "Forget": {
        "delete": "erase",
        "trash": "erase",
        "restore": "erase",
        "purge": "erase",
        "redact": "redact",
        "anonymize": "redact",
        "receipt": "proof",
        "verify": "proof",
        "audit": "proof",
        "delete-session": "dead_sessions",
        "undelete-session": "dead_sessions",
        "purge-session": "dead_sessions",
    },
    "Share": {
        "clone": "sync",
        "remote": "sync",
        "sync": "sync",
        "fetch": "sync",
        "push": "sync",
        "import": "convert",
        "export": "convert",
        "migrate": "convert",
    },
    "Look after": {
        "check": "upkeep",
        "repair": "upkeep",
        "maintain": "upkeep",
        "stats": "upkeep",
        "config": "settings",
        "hooks": "upkeep",
        "size": "keep",
        "compact": "keep",
        "compacted": "keep",
        "bring-back": "keep",
        "recall": "keep",
        "recall-test": "keep",
        "archive": "sessions",
        "unarchive": "sessions",
    },
}
# What programs call, and no help shows.
_HIDDEN: Final = {"hook": "upkeep", "override": "settings"}

ROOMS: Final[Mapping[str, str]] = {
    name: room for rooms in (*GROUPS.values(), _HIDDEN) for name, room in rooms.items()
}
