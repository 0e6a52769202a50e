"""LangGraph's checkpointer in a session: the state of each thread, step by step, as JSON that can be read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from secrets import randbelow
from typing import Any, Final, cast

from anyio import to_thread
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from smp_git.integrations.langgraph.packing import readable, serialized
from smp_git.model.memory import Value
from smp_git.read.values import Key, SeenValues
from smp_git.session import Session
from smp_git.write.values import PreparedValue, Secrets, Writing

_ROOT: Final = "langgraph-threads"
_CHECKPOINT: Final = "checkpoint"
_BLOB: Final = "blob"
_WRITE: Final = "write"
# What is made by chance, and must come back as it was: no text that somebody wrote.
_OPAQUE: Final = frozenset(
    ("id", "ts", "run_id", "thread_id", "checkpoint_id", "tool_call_id", "signature", "$bytes", "$raw",
     "channel_versions", "versions_seen", "encrypted_content"),
)  # fmt: skip


class SmpSaver(BaseCheckpointSaver[str]):
    """A checkpointer of LangGraph in a session.

    A checkpoint is one commit, with the channels that changed; so are the writes of a task.
    A graph must get back exactly what it saved, so what holds a secret is refused, unless
    `secrets` says otherwise. What is deleted stays in the history until maintenance erases
    it, or is erased at once with `erase`.
    """

    def __init__(
        self,
        session: Session,
        *,
        agent: str = "langgraph",
        secrets: Secrets = "refuse",
        erase: bool = False,
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._values = session.values(agent, secrets=secrets, opaque=_OPAQUE)
        self._erase = erase

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that a configuration names, else the latest of its thread."""
        asked, place = get_checkpoint_id(config), _place(config)

        def answer(seen: SeenValues) -> CheckpointTuple | None:
            name = asked or max(_names(seen, place), default=None)
            return self._tuple(seen, (*place, name)) if name is not None else None

        found = self._values.read(answer)
        return found._replace(config=config) if found is not None and asked else found

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield the checkpoints that match, of each thread the latest first."""
        end = get_checkpoint_id(before) if before is not None else None

        def answer(seen: SeenValues) -> list[CheckpointTuple]:
            found: list[CheckpointTuple] = []
            for key in _asked(seen, config):
                if limit is not None and len(found) >= limit:
                    break
                each = self._tuple(seen, key) if end is None or key[-1] < end else None
                if each is not None and _fits(each.metadata, filter or {}):
                    found.append(each)
            return found

        return iter(self._values.read(answer))

    def _tuple(self, seen: SeenValues, key: Key) -> CheckpointTuple | None:
        """Return the checkpoint at a key, which is its thread, its namespace and its name."""
        *place, name = key
        stored = seen.get((*place, _CHECKPOINT, name))
        if stored is None:
            return None
        kept = cast("dict[str, Any]", stored.value)
        checkpoint = self._loaded(kept["checkpoint"])
        blobs = {
            channel: seen.get((*place, _BLOB, channel, str(version)))
            for channel, version in checkpoint["channel_versions"].items()
        }
        values = {
            channel: self._loaded(blob.value)
            for channel, blob in blobs.items()
            if blob is not None and blob.value is not None
        }
        return CheckpointTuple(
            config=_config(place, name),
            checkpoint=cast("Checkpoint", {**checkpoint, "channel_values": values}),
            metadata=self._loaded(kept["metadata"]),
            parent_config=_config(place, kept["parent"]) if kept["parent"] else None,
            pending_writes=list(self._writes(seen, (*place, _WRITE, name))),
        )

    def _writes(self, seen: SeenValues, prefix: Key) -> Iterator[tuple[str, str, Any]]:
        found = [(each.key[-2], cast("dict[str, Any]", each.value)) for each in seen.items(prefix)]
        found.sort(key=lambda row: writes_sort_key(row[1]["path"], row[0], row[1]["index"]))
        for task, kept in found:
            yield task, kept["channel"], self._loaded(kept["value"])

    def _loaded(self, kept: Any) -> Any:
        return self.serde.loads_typed(serialized(kept))

    # Writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint with the channels that changed."""
        place, name = _place(config), checkpoint["id"]
        values = checkpoint["channel_values"]
        body = {key: each for key, each in checkpoint.items() if key != "channel_values"}
        kept = {
            "checkpoint": self._dumped(body),
            "metadata": self._dumped(get_checkpoint_metadata(config, metadata)),
            "parent": get_checkpoint_id(config),
        }
        ready = {(*place, _CHECKPOINT, name): self._values.prepared(kept)}
        for channel, version in new_versions.items():
            value = self._dumped(values[channel]) if channel in values else None
            ready[*place, _BLOB, channel, str(version)] = self._values.prepared(value)
        self._put(ready)
        return _config(place, name)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Save the writes of a task; one that was saved before stays, but for errors and interrupts."""
        place, name = _place(config), get_checkpoint_id(config) or ""
        ready = {}
        for number, (channel, value) in enumerate(writes):
            index = WRITES_IDX_MAP.get(channel, number)
            kept = {
                "channel": channel,
                "value": self._dumped(value),
                "path": task_path,
                "index": index,
            }
            ready[*place, _WRITE, name, task_id, str(index)] = self._values.prepared(kept)
        self._put(ready, once=True)

    def delete_thread(self, thread_id: str) -> None:
        """Delete the checkpoints and writes of a thread."""
        keys = [each.key for each in self._values.list((_ROOT, thread_id))]
        if keys and self._erase:
            self._values.erase(*keys, reason="deleted by the program")
        elif keys:
            self._values.remove(*keys)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return the version behind another one; no two writers give the same."""
        number = int(str(current).partition(".")[0]) if current is not None else 0
        return f"{number + 1:032}.{randbelow(10**16):016}"

    def _dumped(self, value: Any) -> Value:
        return readable(*self.serde.dumps_typed(value))

    def _put(self, ready: Mapping[Key, PreparedValue], *, once: bool = False) -> None:
        def work(now: Writing) -> None:
            for key, value in ready.items():
                if not once or key[-1].startswith("-") or now.get(key) is None:
                    now.put(key, value)

        if ready:
            self._values.write(work)

    # Without blocking the loop

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that a configuration names, else the latest of its thread."""
        return await to_thread.run_sync(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield the checkpoints that match, of each thread the latest first."""
        asked = partial(self.list, config, filter=filter, before=before, limit=limit)
        for each in await to_thread.run_sync(asked):
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint with the channels that changed."""
        return await to_thread.run_sync(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Save the writes of a task."""
        await to_thread.run_sync(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete the checkpoints and writes of a thread."""
        await to_thread.run_sync(self.delete_thread, thread_id)


def _place(config: RunnableConfig) -> Key:
    """Return where the checkpoints of a thread and a namespace are."""
    said = config["configurable"]
    return (_ROOT, str(said["thread_id"]), str(said.get("checkpoint_ns") or ""))


def _config(place: Sequence[str], name: str) -> RunnableConfig:
    _, thread, namespace = place
    return {
        "configurable": {
            "thread_id": thread,
            "checkpoint_ns": namespace,
            "checkpoint_id": name,
        }
    }


def _names(seen: SeenValues, place: Key) -> list[str]:
    return [each.key[-1] for each in seen.list((*place, _CHECKPOINT))]


def _asked(seen: SeenValues, config: RunnableConfig | None) -> list[Key]:
    """Return the checkpoints that a configuration means: thread, namespace and name of each."""
    said = config["configurable"] if config is not None else {}
    prefix = (_ROOT, str(said["thread_id"])) if "thread_id" in said else (_ROOT,)
    found = [
        (*each.key[:3], each.key[4])
        for each in seen.list(prefix)
        if each.key[3] == _CHECKPOINT
        and said.get("checkpoint_ns") in (None, each.key[2])
        and said.get("checkpoint_id") in (None, each.key[4])
    ]
    found.sort(key=lambda key: key[-1], reverse=True)
    return sorted(found, key=lambda key: key[:-1])


def _fits(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(metadata.get(name) == value for name, value in wanted.items())
