"""smp-git: a memory for AI agents that lasts, in Git."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smp_git.agents.agent import Agent as Agent
    from smp_git.agents.fence import Quote as Quote
    from smp_git.agents.joint import Likeness as Likeness
    from smp_git.agents.messages import Injection as Injection
    from smp_git.agents.transaction import AgentTransaction as AgentTransaction
    from smp_git.agents.values import Values as Values
    from smp_git.agents.workflow import Prepared as Prepared
    from smp_git.ask.answer import Answer as Answer
    from smp_git.ask.answer import Hit as Hit
    from smp_git.ask.bisect import Culprit as Culprit
    from smp_git.ask.bisect import View as View
    from smp_git.ask.context import Context as Context
    from smp_git.ask.links import Related as Related
    from smp_git.ask.overviews import AgentActivity as AgentActivity
    from smp_git.ask.overviews import Bucket as Bucket
    from smp_git.ask.overviews import Event as Event
    from smp_git.ask.overviews import Summary as Summary
    from smp_git.ask.overviews import Topic as Topic
    from smp_git.ask.vectors import Indexed as Indexed
    from smp_git.convert.migrate import Migration as Migration
    from smp_git.convert.report import Import as Import
    from smp_git.format.messages import Touch as Touch
    from smp_git.format.metadata import Metadata as Metadata
    from smp_git.keep.anonymize import Anonymized as Anonymized
    from smp_git.keep.anonymize import AnonymizedMemories as AnonymizedMemories
    from smp_git.keep.check import Problem as Problem
    from smp_git.keep.compact import Compaction as Compaction
    from smp_git.keep.configure import Configured as Configured
    from smp_git.keep.forecast import Forecast as Forecast
    from smp_git.keep.glance import Glance as Glance
    from smp_git.keep.info import SessionInfo as SessionInfo
    from smp_git.keep.maintenance import Maintained as Maintained
    from smp_git.keep.mask import Switches as Switches
    from smp_git.keep.recall import RecallResult as RecallResult
    from smp_git.keep.repairs import Repair as Repair
    from smp_git.keep.stats import Stats as Stats
    from smp_git.keep.syncing import Synced as Synced
    from smp_git.keep.usage import SizeReport as SizeReport
    from smp_git.model.errors import SmpError as SmpError
    from smp_git.model.given import GivenFields as GivenFields
    from smp_git.model.memory import Link as Link
    from smp_git.model.memory import Memory as Memory
    from smp_git.model.settings import Settings as Settings
    from smp_git.read.archives import Archived as Archived
    from smp_git.read.changes import VersionChange as VersionChange
    from smp_git.read.compactions import Compacted as Compacted
    from smp_git.read.history import BlamedField as BlamedField
    from smp_git.read.history import FieldChange as FieldChange
    from smp_git.read.history import MemoryDiff as MemoryDiff
    from smp_git.read.history import Version as Version
    from smp_git.read.values import ListedValue as ListedValue
    from smp_git.read.values import SeenValues as SeenValues
    from smp_git.read.values import StoredValue as StoredValue
    from smp_git.read.values import ValueVersion as ValueVersion
    from smp_git.remove.audit import Audited as Audited
    from smp_git.remove.audit import Record as Record
    from smp_git.remove.delete import Dropped as Dropped
    from smp_git.remove.delete import Plan as Plan
    from smp_git.remove.history.journal import Receipt as Receipt
    from smp_git.remove.history.prove import Proof as Proof
    from smp_git.remove.purge import Purged as Purged
    from smp_git.remove.redact import Redaction as Redaction
    from smp_git.remove.restore import Restored as Restored
    from smp_git.remove.sessions import SessionReceipt as SessionReceipt
    from smp_git.remove.trash import Damaged as Damaged
    from smp_git.remove.trash import Deleted as Deleted
    from smp_git.session import Session as Session
    from smp_git.store import Store as Store
    from smp_git.sync.outbound import RemoteState as RemoteState
    from smp_git.sync.remotes import Remote as Remote
    from smp_git.sync.remotes import SyncResult as SyncResult
    from smp_git.write.branches import Branch as Branch
    from smp_git.write.branches import Contested as Contested
    from smp_git.write.branches import Tag as Tag
    from smp_git.write.hand_edits import HandEdit as HandEdit
    from smp_git.write.merge.join import MergePlan as MergePlan
    from smp_git.write.merge.join import MergeResult as MergeResult
    from smp_git.write.merge.memories import Conflict as Conflict
    from smp_git.write.transaction import Transaction as Transaction
    from smp_git.write.values import Writing as Writing
    from smp_git.write.writer import Change as Change

__version__ = "0.1.0"

# Each name and the module that defines it: loaded when first asked for, so that
# importing the package costs nothing.
_HOMES = {
    "Agent": "agents.agent",
    "AgentActivity": "ask.overviews",
    "AgentTransaction": "agents.transaction",
    "Anonymized": "keep.anonymize",
    "AnonymizedMemories": "keep.anonymize",
    "Answer": "ask.answer",
    "Archived": "read.archives",
    "Audited": "remove.audit",
    "BlamedField": "read.history",
    "Branch": "write.branches",
    "Bucket": "ask.overviews",
    "Change": "write.writer",
    "Compacted": "read.compactions",
    "Compaction": "keep.compact",
    "Configured": "keep.configure",
    "Conflict": "write.merge.memories",
    "Contested": "write.branches",
    "Context": "ask.context",
    "Culprit": "ask.bisect",
    "Damaged": "remove.trash",
    "Deleted": "remove.trash",
    "Dropped": "remove.delete",
    "Event": "ask.overviews",
    "FieldChange": "read.history",
    "GivenFields": "model.given",
    "Forecast": "keep.forecast",
    "Glance": "keep.glance",
    "HandEdit": "write.hand_edits",
    "Hit": "ask.answer",
    "Import": "convert.report",
    "Indexed": "ask.vectors",
    "Injection": "agents.messages",
    "Likeness": "agents.joint",
    "Link": "model.memory",
    "ListedValue": "read.values",
    "Maintained": "keep.maintenance",
    "Memory": "model.memory",
    "MemoryDiff": "read.history",
    "MergePlan": "write.merge.join",
    "MergeResult": "write.merge.join",
    "Metadata": "format.metadata",
    "Migration": "convert.migrate",
    "Plan": "remove.delete",
    "Prepared": "agents.workflow",
    "Problem": "keep.check",
    "Proof": "remove.history.prove",
    "Purged": "remove.purge",
    "Quote": "agents.fence",
    "RecallResult": "keep.recall",
    "Receipt": "remove.history.journal",
    "Record": "remove.audit",
    "Redaction": "remove.redact",
    "Related": "ask.links",
    "Remote": "sync.remotes",
    "RemoteState": "sync.outbound",
    "Repair": "keep.repairs",
    "Restored": "remove.restore",
    "SeenValues": "read.values",
    "Session": "session",
    "SessionInfo": "keep.info",
    "SessionReceipt": "remove.sessions",
    "Settings": "model.settings",
    "SizeReport": "keep.usage",
    "SmpError": "model.errors",
    "Stats": "keep.stats",
    "Store": "store",
    "StoredValue": "read.values",
    "Summary": "ask.overviews",
    "Switches": "keep.mask",
    "SyncResult": "sync.remotes",
    "Synced": "keep.syncing",
    "Tag": "write.branches",
    "Topic": "ask.overviews",
    "Touch": "format.messages",
    "Transaction": "write.transaction",
    "ValueVersion": "read.values",
    "Values": "agents.values",
    "Version": "read.history",
    "VersionChange": "read.changes",
    "View": "ask.bisect",
    "Writing": "write.values",
}

__all__ = [
    "Agent",
    "AgentActivity",
    "AgentTransaction",
    "Anonymized",
    "AnonymizedMemories",
    "Answer",
    "Archived",
    "Audited",
    "BlamedField",
    "Branch",
    "Bucket",
    "Change",
    "Compacted",
    "Compaction",
    "Configured",
    "Conflict",
    "Contested",
    "Context",
    "Culprit",
    "Damaged",
    "Deleted",
    "Dropped",
    "Event",
    "FieldChange",
    "Forecast",
    "GivenFields",
    "Glance",
    "HandEdit",
    "Hit",
    "Import",
    "Indexed",
    "Injection",
    "Likeness",
    "Link",
    "ListedValue",
    "Maintained",
    "Memory",
    "MemoryDiff",
    "MergePlan",
    "MergeResult",
    "Metadata",
    "Migration",
    "Plan",
    "Prepared",
    "Problem",
    "Proof",
    "Purged",
    "Quote",
    "RecallResult",
    "Receipt",
    "Record",
    "Redaction",
    "Related",
    "Remote",
    "RemoteState",
    "Repair",
    "Restored",
    "SeenValues",
    "Session",
    "SessionInfo",
    "SessionReceipt",
    "Settings",
    "SizeReport",
    "SmpError",
    "Stats",
    "Store",
    "StoredValue",
    "Summary",
    "Switches",
    "SyncResult",
    "Synced",
    "Tag",
    "Topic",
    "Touch",
    "Transaction",
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
    return sorted([*__all__, "__version__"])
