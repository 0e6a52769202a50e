"""Processes that are killed in the middle of what they do."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any, Final

from smp_git.git import disk, storage
from smp_git.git.repository import Repository
from smp_git.read.replica import Local
from smp_git.remove.history import journal
from smp_git.remove.history.publish import Publisher
from smp_git.sync import inbound
from smp_git.write.writer import Writer

# What leaves something on the disk, or is about to.
_STEPS: Final[tuple[tuple[Any, str], ...]] = (
    (journal, "reached"), (disk, "replace_file"), (disk, "replace_durably"), (storage, "write_pack"),
    (Publisher, "prepare"), (Publisher, "publish"), (Publisher, "_move"), (Repository, "publish"),
    (Repository, "point"), (Repository, "store"), (Local, "mark_pending"), (Local, "clear_pending"),
    (Local, "raise_epoch"), (Writer, "publish"), (inbound, "cleaned"), (inbound, "integrate"),
)  # fmt: skip


def killed(work: Callable[[], object], after: int) -> bool:
    """Do `work` in a child that gets SIGKILL at the nth step; return whether it came to that."""
    child = os.fork()
    if child == 0:
        try:
            _count(after)
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def _count(after: int) -> None:
    left = [after]

    def reached() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    for owner, name in _STEPS:
        setattr(owner, name, _counted(getattr(owner, name), reached))


def _counted(original: Callable[..., Any], reached: Callable[[], None]) -> Callable[..., Any]:
    def step(*args: Any, **kwargs: Any) -> Any:
        reached()
        result = original(*args, **kwargs)
        reached()
        return result

    return step
