"""README of a session brought up to date, with the attributes that let a forge fold the rest."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from smp_git.format import messages, metadata, readme
from smp_git.format.lines import Entry
from smp_git.format.records import FORMAT, WITH_README
from smp_git.git import layout
from smp_git.model.ids import sort_key
from smp_git.model.lifecycle import MAINTAINER
from smp_git.model.memory import KINDS
from smp_git.read.snapshot import Snapshot
from smp_git.write.handle import Handle
from smp_git.write.stage import Stage


def is_due(handle: Handle) -> bool:
    """Whether the README says something else than the session, and is the program's to change.

    A replica that has written nothing writes no README either, nor does one of format 1.
    """
    snapshot = handle.reader.main()
    said = snapshot.metadata
    if said.format < FORMAT or not handle.settings.readme:
        return False
    if messages.read(snapshot.commit.message).subject == messages.README:
        # Nothing was written since; all pages need not be read to see that.
        return False
    if not handle.main_writer.is_registered(snapshot):
        return False
    if _is_a_persons(snapshot, handle.reader.path):
        return False
    found, wanted = _file(snapshot, readme.PATH), written(snapshot)
    if found is None and not snapshot.page_ids():
        return False
    # What is passed over would be missing from the counts.
    return not snapshot.problems() and found != wanted


def refresh(handle: Handle) -> None:
    """Commit the README of main as its memories ask for."""

    def work(stage: Stage) -> None:
        for path, data in _files(stage.base).items():
            stage.put_file(path, data, "")

    handle.main_writer.run(MAINTAINER, work, subject=messages.README)


def _files(base: Snapshot) -> dict[str, bytes]:
    """Return the files that a README needs, itself among them."""
    out = {readme.PATH: written(base)}
    if _file(base, layout.ATTRIBUTES) == layout.TRACKED[layout.ATTRIBUTES]:
        out[layout.ATTRIBUTES] = layout.WITH_README
    said = _file(base, metadata.PATH)
    if said is not None and base.metadata.rule < WITH_README:
        out[metadata.PATH] = metadata.with_readme(said)
    return out


def written(snapshot: Snapshot) -> bytes:
    """Return the README of a snapshot: counts and ids, a function of its memories."""
    entries = {kind: snapshot.entries(kind) for kind in KINDS}
    decisions, findings = entries["decision"], entries["finding"]
    return readme.write(
        readme.Told(
            counts={kind: len(found) for kind, found in entries.items()},
            decisions=_newest(each for each in decisions if each.status != "superseded"),
            findings=_newest(each for each in findings if each.status == "open"),
        )
    )


def _newest(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda each: (each.at, sort_key(each.id)), reverse=True)


def _is_a_persons(snapshot: Snapshot, folder: Path) -> bool:
    """Whether a person wrote a README, committed or not, perhaps in other letters."""
    names = {*snapshot.repository.tree(snapshot.tree), *(each.name for each in folder.iterdir())}
    if any(map(readme.is_alike, names)):
        return True
    data = _file(snapshot, readme.PATH)
    if data is not None and not readme.is_made(data):
        return True
    file = folder / readme.PATH
    if file.is_symlink() or file.is_dir():
        return True
    return file.is_file() and not readme.is_made(file.read_bytes())


def _file(snapshot: Snapshot, path: str) -> bytes | None:
    blob = snapshot.repository.find(snapshot.tree, path)
    return snapshot.repository.blob(blob) if blob is not None else None
