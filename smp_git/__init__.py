"""smp-git: a memory for AI agents that lasts, in Git."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smp_git.agents.agent import Agent as Agent
    from smp_git.agents.values import Values as Values
    from smp_git.ask.bisect import Culprit as Culprit
    from smp_git.ask.bisect import View as View
    from smp_git.keep.anonymize import Anonymized as Anonymized
    from smp_git.keep.check import Problem as Problem
    from smp_git.keep.compact import Compaction as Compaction
    from smp_git.keep.compacted import Compacted as Compacted
    from smp_git.keep.configure import Configured as Configured
    from smp_git.keep.forecast import Forecast as Forecast
    from smp_git.keep.info import SessionInfo as SessionInfo
    from smp_git.keep.mask import Switches as Switches
    from smp_git.keep.quota import SizeReport as SizeReport
    from smp_git.keep.recall import RecallResult as RecallResult
    from smp_git.keep.syncing import Synced
    from smp_git.model.errors import SmpError as SmpError
    from smp_git.model.memory import Link as Link
    from smp_git.model.memory import Memory as Memory
    from smp_git.read.changes import VersionChange as VersionChange
    from smp_git.read.history import BlamedField as BlamedField
    from smp_git.read.history import FieldChange as FieldChange
    from smp_git.read.history import MemoryDiff as MemoryDiff
    from smp_git.read.history import Version as Version
    from smp_git.read.values import ListedValue as ListedValue
    from smp_git.read.values import SeenValues as SeenValues
    from smp_git.read.values import StoredValue as StoredValue
    from smp_git.read.values import ValueVersion as ValueVersion
    from smp_git.remove.delete import Dropped
    from smp_git.remove.history.journal import Receipt
    from smp_git.remove.purge import Purged as Purged
    from smp_git.remove.redact import Redaction as Redaction
    from smp_git.remove.restore import Restored as Restored
    from smp_git.remove.sessions import SessionReceipt as SessionReceipt
    from smp_git.session import Session as Session
    from smp_git.store import Store as Store
    from smp_git.sync.outbound import RemoteState
    from smp_git.sync.remotes import Remote as Remote
    from smp_git.sync.remotes import SyncResult
    from smp_git.write.branches import Branch as Branch
    from smp_git.write.branches import Contested as Contested
    from smp_git.write.branches import Tag as Tag
    from smp_git.write.hand_edits import HandEdit as HandEdit
    from smp_git.write.merge.join import MergePlan as MergePlan
    from smp_git.write.merge.join import MergeResult as MergeResult
    from smp_git.write.merge.memories import Conflict as Conflict
    from smp_git.write.values import Writing as Writing
    from smp_git.write.writer import Change as Change

__version__ = "0.1.0"

# Each name and the module that defines it: loaded when first asked for, so that
# importing the package costs nothing.
_HOMES = {
    "Agent": "agents.agent",
    "Anonymized": "keep.anonymize",
    "BlamedField": "read.history",
    "Branch": "write.branches",
    "Change": "write.writer",
    "Conflict": "write.merge.memories",
    "Contested": "write.branches",
    "Culprit": "ask.bisect",
    "Dropped": "remove.delete",
    "FieldChange": "read.history",
    "Forecast": "keep.forecast",
    "HandEdit": "write.hand_edits",
    "Link": "model.memory",
    "Memory": "model.memory",
    "MemoryDiff": "read.history",
    "MergePlan": "write.merge.join",
    "MergeResult": "write.merge.join",
    "Problem": "keep.check",
    "Compaction": "keep.compact",
    "Compacted": "keep.compacted",
    "Configured": "keep.configure",
    "SizeReport": "keep.quota",
    "RecallResult": "keep.recall",
    "Purged": "remove.purge",
    "Receipt": "remove.history.journal",
    "Redaction": "remove.redact",
    "Remote": "sync.remotes",
    "RemoteState": "sync.outbound",
    "Restored": "remove.restore",
    "Session": "session",
    "SessionInfo": "keep.info",
    "SessionReceipt": "remove.sessions",
    "SmpError": "model.errors",
    "Store": "store",
    "Switches": "keep.mask",
    "SyncResult": "sync.remotes",
    "Synced": "keep.syncing",
    "Tag": "write.branches",
    "Version": "read.history",
    "VersionChange": "read.changes",
    "View": "ask.bisect",
    "ListedValue": "read.values",
    "SeenValues": "read.values",
    "StoredValue": "read.values",
    "ValueVersion": "read.values",
    "Values": "agents.values",
    "Writing": "write.values",
}

__all__ = [
    "Agent",
    "Anonymized",
    "BlamedField",
    "Branch",
    "Change",
    "Compacted",
    "Compaction",
    "Configured",
    "Conflict",
    "Contested",
    "Culprit",
    "Dropped",
    "FieldChange",
    "Forecast",
    "HandEdit",
    "Link",
    "ListedValue",
    "Memory",
    "MemoryDiff",
    "MergePlan",
    "MergeResult",
    "Problem",
    "Purged",
    "RecallResult",
    "Receipt",
    "Redaction",
    "Remote",
    "RemoteState",
    "Restored",
    "SeenValues",
    "Session",
    "SessionInfo",
    "SessionReceipt",
    "SizeReport",
    "SmpError",
    "Store",
    "StoredValue",
    "Switches",
    "SyncResult",
    "Synced",
    "Tag",
    "ValueVersion",
    "Values",
    "Version",
    "VersionChange",
    "View",
    "Writing",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'smp_git' has no attribute {name!r}")
    value: object = getattr(import_module(f"smp_git.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
