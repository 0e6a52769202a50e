"""What this replica last saw of each remote: kept locally, never sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from smp_git.git import disk
from smp_git.model.times import format_time
from smp_git.sync import turns

_NAME: Final = "remotes.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A remote as it was when this replica last spoke with it.

    `refs` are the ids that the remote itself named, which a forced push may replace.
    `withheld` says why it still holds what was deleted here, if it does; `waiting` which
    replicas waited there for their turn, and since when that is known.
    """

    address: str
    refs: Mapping[str, str] = field(default_factory=dict)
    at: datetime | None = None
    withheld: str | None = None
    waiting: Mapping[str, float] = field(default_factory=dict)


def read(smp: Path, remote: str, address: str) -> Seen:
    """Return what is known of a remote; nothing, if its address is another now."""
    kept = _all(smp).get(remote)
    if not isinstance(kept, dict) or kept.get("address") != address:
        return Seen(address=address)
    refs, at, withheld = kept.get("refs"), kept.get("at"), kept.get("withheld")
    return Seen(
        address=address,
        refs={str(k): str(v) for k, v in refs.items()} if isinstance(refs, dict) else {},
        at=datetime.fromisoformat(at).astimezone(UTC) if isinstance(at, str) else None,
        withheld=withheld if isinstance(withheld, str) else None,
        waiting=turns.read(kept.get("waiting")),
    )


def keep(smp: Path, remote: str, seen: Seen | None) -> None:
    """Remember what was seen of a remote; None forgets it.

    An older state is as good after a power cut: what changed since is fetched again.
    """
    everything = _all(smp)
    if seen is None:
        everything.pop(remote, None)
    else:
        everything[remote] = {
            "address": seen.address,
            "refs": dict(seen.refs),
            "at": format_time(seen.at) if seen.at else None,
            "withheld": seen.withheld,
            "waiting": dict(seen.waiting),
        }
    data = json.dumps(everything).encode()
    disk.replace_file(smp / _NAME, data, smp / f"{_NAME}.tmp")


def _all(smp: Path) -> dict[str, object]:
    try:
        found = json.loads((smp / _NAME).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
