"""The commands: their groups, in the order of the help, and the room each lives in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class ListedCommand(NamedTuple):
    """A command as the help lists it: its room, and the first line of what it says of itself."""

    room: str
    summary: str


# What a newcomer meets first comes first.
GROUPS: Final[Mapping[str, Mapping[str, ListedCommand]]] = {
    "Start": {
        "demo": ListedCommand("demo", "Run a sample session and leave it on disk"),
        "init": ListedCommand("sessions", "Create a store"),
        "new": ListedCommand("sessions", "Create a session and use it in this terminal"),
        "use": ListedCommand("sessions", "Choose the session that commands in this terminal use"),
        "sessions": ListedCommand("sessions", "List the sessions in the store"),
        "status": ListedCommand(
            "sessions", "Show the session, its branch, edits by hand, remotes and size"
        ),
        "web": ListedCommand("web", "Serve a page to look at the sessions of the store"),
        "report": ListedCommand("web", "Write a session as one HTML file that opens anywhere"),
        "info": ListedCommand("sessions", "Show an overview of a session"),
        "help": ListedCommand("guide", "Explain the program, a command or a group of commands"),
        "completion": ListedCommand("guide", "Print what completes commands in a shell"),
        "claude": ListedCommand(
            "agents",
            "Give Claude Code a memory: hooks, the commands /remember, /recall, /forget, and a skill",
        ),
        "mcp": ListedCommand(
            "agents", "Serve the memory to a client of the Model Context Protocol"
        ),
    },
    "Write": {
        "add": ListedCommand("write", "Add a memory and print its id"),
        "edit": ListedCommand("write", "Change a memory and print its id"),
        "resolve": ListedCommand("write", "Mark a finding or a decision as resolved"),
        "supersede": ListedCommand("write", "Add a memory that replaces another, and print its id"),
        "pin": ListedCommand("write", "Protect a memory from decay and compaction"),
        "unpin": ListedCommand("write", "Let a memory decay again"),
        "link": ListedCommand("write", "Link a memory to another"),
        "fields": ListedCommand("guide", "List the fields of a kind of memory"),
        "state": ListedCommand("write", "Show or change the state of an agent"),
    },
    "Ask": {
        "list": ListedCommand("listing", "List memories, the newest last"),
        "show": ListedCommand("listing", "Show a memory"),
        "query": ListedCommand("ask", "Search memories, best matches first"),
        "similar": ListedCommand("ask", "Find the memories most similar to a text or a memory"),
        "related": ListedCommand("ask", "Follow the links of a memory in both directions"),
        "context": ListedCommand("ask", "Print the context an agent needs to continue"),
        "prepare": ListedCommand(
            "agents", "Print what a workflow wants to recall, before a phase of it"
        ),
        "watch": ListedCommand("ask", "Follow new matching memories, as JSON lines"),
        "topics": ListedCommand("overviews", "List the topics of a session, most important first"),
        "timeline": ListedCommand("overviews", "Show what happened when"),
        "agents": ListedCommand("overviews", "List the agents of a session, busiest first"),
        "summary": ListedCommand("overviews", "Summarize a session in its own words"),
        "aggregate": ListedCommand("overviews", "Count and measure memories"),
        "explain": ListedCommand("ask", "Show how the priority of a memory is computed"),
        "index": ListedCommand("ask", "Prepare the session for questions"),
    },
    "History": {
        "log": ListedCommand("history", "Show commits, newest first"),
        "diff": ListedCommand("history", "Show how memories changed, field by field"),
        "blame": ListedCommand("history", "Show who set each field, and when"),
        "undo": ListedCommand("undo", "Undo the latest write, or that of a memory or commit"),
        "redo": ListedCommand("undo", "Take the latest undo back"),
        "rollback": ListedCommand("undo", "Return the session, or one memory, to an earlier state"),
        "bisect": ListedCommand("bisect", "Find the write that broke an expectation"),
        "tag": ListedCommand("branches", "List the tags, tag a commit, or move or remove a tag"),
    },
    "By hand": {
        "path": ListedCommand("listing", "Print the path of a memory's file, to edit by hand"),
        "commit": ListedCommand("undo", "Check edits made by hand, and commit them"),
    },
    "Branches": {
        "branch": ListedCommand("branches", "List the branches, create one, or drop one"),
        "switch": ListedCommand("branches", "Choose the branch that commands in this terminal use"),
        "merge": ListedCommand("branches", "Merge another branch into the current one"),
        "conflicts": ListedCommand("branches", "List unresolved values that lost in merges"),
        "resolve-conflict": ListedCommand("branches", "Resolve a contested memory"),
    },
    "Forget": {
        "delete": ListedCommand("erase", "Delete memories from the session and all of its history"),
        "trash": ListedCommand("erase", "List deleted memories that can be restored"),
        "restore": ListedCommand("erase", "Restore deleted memories under their ids"),
        "purge": ListedCommand("erase", "Make deleted memories unrecoverable"),
        "redact": ListedCommand("redact", "Remove a text from every version of every memory"),
        "anonymize": ListedCommand("redact", "Replace a session with a copy without names"),
        "receipt": ListedCommand("proof", "Show what a deletion removed and proved"),
        "verify": ListedCommand("proof", "Prove again that deleted content is gone"),
        "audit": ListedCommand("proof", "Show who deleted, restored, redacted or purged what"),
        "delete-session": ListedCommand("dead_sessions", "Delete a whole session"),
        "undelete-session": ListedCommand("dead_sessions", "Restore a deleted session"),
        "purge-session": ListedCommand("dead_sessions", "Destroy a deleted session"),
    },
    "Share": {
        "clone": ListedCommand("sync", "Clone a session and use it in this terminal"),
        "remote": ListedCommand("sync", "List the remotes of a session, add one, or remove one"),
        "sync": ListedCommand("sync", "Sync a session with a remote: fetch, merge, push"),
        "fetch": ListedCommand("sync", "Fetch from a remote without merging"),
        "push": ListedCommand("sync", "Push to a remote"),
        "import": ListedCommand("convert", "Import memories of other programs"),
        "export": ListedCommand("convert", "Export a session, or what matches, in another format"),
        "migrate": ListedCommand(
            "convert", "Migrate a project that keeps its memory in older formats"
        ),
    },
    "Look after": {
        "check": ListedCommand("upkeep", "Check that a session is sound"),
        "repair": ListedCommand("upkeep", "Repair a session from what remains of it"),
        "maintain": ListedCommand("upkeep", "Do what is due: once a day, from a timer or by hand"),
        "stats": ListedCommand("upkeep", "Show the metrics of the store"),
        "config": ListedCommand("settings", "Show or change settings"),
        "hooks": ListedCommand(
            "upkeep", "List, install or remove the hooks of a session or server"
        ),
        "size": ListedCommand("keep", "Show what a session has of its quota, and what takes it"),
        "compact": ListedCommand("keep", "Make a session smaller"),
        "compacted": ListedCommand("keep", "List what compactions took out, and archived"),
        "bring-back": ListedCommand("keep", "Bring back what a compaction took out"),
        "recall": ListedCommand("keep", "Note a question that some memories must answer"),
        "recall-test": ListedCommand("keep", "Ask the questions of smp recall"),
        "archive": ListedCommand("sessions", "Archive a session"),
        "unarchive": ListedCommand("sessions", "Restore an archived session"),
    },
}
# What programs call, and no help shows.
_HIDDEN: Final = {"hook": "upkeep", "override": "settings"}

# What changes nothing, or says what it would change.
READING: Final = frozenset(
    (*GROUPS["Ask"], "sessions", "status", "info", "log", "diff", "blame", "bisect", "path",
     "conflicts", "trash", "receipt", "verify", "audit", "export", "check", "stats", "size",
     "compacted", "recall-test", "help", "fields", "completion")
)  # fmt: skip

ENTRIES: Final[Mapping[str, ListedCommand]] = {
    name: entry for entries in GROUPS.values() for name, entry in entries.items()
}
ROOMS: Final[Mapping[str, str]] = {
    **{name: entry.room for name, entry in ENTRIES.items()},
    **_HIDDEN,
}
