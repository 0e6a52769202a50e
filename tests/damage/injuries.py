"""Damage as disks, power cuts, copies and people make it, done to a session on the disk."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from smp_git import Store
from tests.conftest import Clock
from tests.support import git

MEMORIES: Final = 500
# The victim of each kind of damage.
VICTIM: Final = "FIND-0042"
FILE: Final = "findings/000/FIND-0042.yaml"
PAGE: Final = "findings/000"


def filled(folder: Path, memories: int = MEMORIES) -> Store:
    """Return a store with a session of 500 memories, or 160 and more, and another beside it."""
    Store.init(folder)
    (folder / "config.yaml").write_text("format: 1\ndurability: relaxed\nredaction: off\n")
    store = Store.open(folder, clock=Clock())
    with store.create_session("shop", user="ada") as session:
        with session.transaction() as tx:
            for number in range(memories - 100):
                tx.add("finding", f"slow page {number}", severity="low", tags=[f"t{number % 7}"])
        with session.transaction() as tx:
            for number in range(60):
                tx.add("turn", f"what was said about page {number}", speaker="ada")
            for number in range(39):
                tx.add("decision", f"cache page {number}", rationale="it is read often")
            tx.add("preference", "answers in short", category="style", key="length")
        session.edit(VICTIM, text="slow page 41, and the worst of them", agent="ada")
    with store.create_session("other", user="ada") as session:
        session.add("finding", "slow page elsewhere")
    return store


def copied(template: Path, place: Path, *, packed: bool) -> Store:
    """Return a copy of a store, whose session `shop` is loose or packed."""
    shutil.copytree(template, place, symlinks=True)
    shop = place / "active/shop"
    if packed:
        git(shop, "repack", "-adq")
        git(shop, "prune-packed", "-q")
    else:
        unpacked(shop)
    for file in (shop / ".git/objects").rglob("*"):
        if file.is_file():
            file.chmod(0o600)
    return Store.open(place, clock=Clock())


def unpacked(session: Path) -> None:
    """Put every object into a file of its own."""
    packs = session / ".git/objects/pack"
    aside = session / ".git/aside"
    packs.rename(aside)
    packs.mkdir()
    for pack in aside.glob("*.pack"):
        with pack.open("rb") as file:
            subprocess.run(
                ["git", "unpack-objects", "-q"],
                cwd=session,
                stdin=file,
                check=True,
                capture_output=True,
            )
    shutil.rmtree(aside)


def object_of(session: Path, what: str) -> str:
    """Return the id of an object by a revision that names it."""
    return git(session, "rev-parse", what).strip()


def loose(session: Path, name: str) -> Path:
    """Return the file of a loose object."""
    return session / ".git/objects" / name[:2] / name[2:]


def flip(file: Path, at: float = 0.5) -> None:
    """Flip a bit in the middle of a file, or elsewhere."""
    data = bytearray(file.read_bytes())
    data[min(len(data) - 1, int(len(data) * at))] ^= 0x10
    file.write_bytes(data)


def emptied(file: Path) -> None:
    """Leave a file without content, as a power cut does."""
    file.write_bytes(b"")


def zeroed(file: Path) -> None:
    """Leave a file of NULs, as a power cut does."""
    file.write_bytes(bytes(file.stat().st_size))


def cut(file: Path) -> None:
    """Leave half of a file, as a copy that was broken off does."""
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def gone(file: Path) -> None:
    """Remove a file."""
    file.unlink()


HOW: Final[dict[str, Callable[[Path], None]]] = {
    "flipped": flip,
    "emptied": emptied,
    "zeroed": zeroed,
    "cut": cut,
    "gone": gone,
}

WHAT: Final = {
    "memory": f"HEAD:{FILE}",
    "page index": f"HEAD:{PAGE}/index.yaml",
    "page tree": f"HEAD:{PAGE}",
    "kind tree": "HEAD:findings",
    "root tree": "HEAD^{tree}",
    "head commit": "HEAD",
    "metadata": "HEAD:metadata.yaml",
    "earlier memory": f"HEAD~1:{FILE}",
    "earlier tree": f"HEAD~1:{PAGE}",
    "earlier commit": "HEAD~1",
}


def without(session: Path, *names: str) -> None:
    """Repack a session without some objects, as if they had never been stored."""
    packs = session / ".git/objects/pack"
    listed = git(session, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    kept = "\n".join(each for each in listed if each not in names) + "\n"
    scratch = session / ".git/scratch"
    scratch.mkdir()
    subprocess.run(
        ["git", "pack-objects", "-q", str(scratch / "pack")],
        cwd=session, input=kept, text=True, check=True, capture_output=True,
    )  # fmt: skip
    for file in packs.iterdir():
        file.unlink()
    for file in scratch.iterdir():
        shutil.move(file, packs / file.name)
        (packs / file.name).chmod(0o600)
    scratch.rmdir()


def _everything(file: Path) -> None:
    shutil.rmtree(file)


def _garbage(file: Path) -> None:
    file.write_bytes(b"not what it was\0" * 50)


def _all_local(session: Path, how: Callable[[Path], None]) -> None:
    for file in (session / ".git/smp").iterdir():
        if file.is_file():
            how(file)


def of_packs(session: Path, suffix: str, how: Callable[[Path], None]) -> None:
    """Damage the file of each pack that ends so."""
    for file in (session / ".git/objects/pack").glob(f"*{suffix}"):
        how(file)


def lying(session: Path) -> None:
    """Commit a page's index whose first line says another title, as only plain Git does."""
    index = session / f"{PAGE}/index.yaml"
    index.write_text(index.read_text().replace("slow page 0", "a lie about it", 1))
    _plainly(session, "a lie")


def _plainly(session: Path, message: str) -> None:
    git(session, "add", "-A")
    git(session, "-c", "core.hooksPath=/dev/null", "commit", "-qm", message)


def committed(text: str) -> Callable[[Path], None]:
    """Return an injury that commits a memory as plain Git lets anybody."""

    def injure(session: Path) -> None:
        (session / FILE).write_text(text)
        _plainly(session, "by hand")

    return injure


_BOMB: Final = (
    "id: FIND-0042\nkind: finding\ncreated_at: 2026-01-11T14:30:00Z\nagent: ada\nfinding: x\n"
    + "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(
        f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n"
        for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
)

# Injuries that are none of one object, done to the folder of a session.
WHERE: Final[dict[str, Callable[[Path], object]]] = {
    "branch empty": lambda session: emptied(session / ".git/refs/heads/main"),
    "branch NUL": lambda session: zeroed(session / ".git/refs/heads/main"),
    "branch gone": lambda session: gone(session / ".git/refs/heads/main"),
    "branch garbage": lambda session: _garbage(session / ".git/refs/heads/main"),
    "branch names a missing commit": lambda session: (session / ".git/refs/heads/main").write_text(
        "12" * 20 + "\n"
    ),
    "HEAD gone": lambda session: gone(session / ".git/HEAD"),
    "HEAD garbage": lambda session: _garbage(session / ".git/HEAD"),
    "HEAD empty": lambda session: emptied(session / ".git/HEAD"),
    "config gone": lambda session: gone(session / ".git/config"),
    "config garbage": lambda session: _garbage(session / ".git/config"),
    "config empty": lambda session: emptied(session / ".git/config"),
    "Git's index garbage": lambda session: _garbage(session / ".git/index"),
    "Git's index gone": lambda session: gone(session / ".git/index"),
    "Git's index empty": lambda session: emptied(session / ".git/index"),
    "another branch torn": lambda session: (session / ".git/refs/heads/idea").write_bytes(
        bytes(41)
    ),
    "packed-refs garbage": lambda session: _garbage(session / ".git/packed-refs"),
    "local files gone": lambda session: _everything(session / ".git/smp"),
    "local files garbage": lambda session: _all_local(session, _garbage),
    "local files empty": lambda session: _all_local(session, emptied),
    "objects gone": lambda session: _everything(session / ".git/objects/info"),
    "page index lies": lying,
    "broken YAML": committed("id: FIND-0042\nkind: [\n"),
    "duplicate keys": committed("id: FIND-0042\nkind: finding\nfinding: a\nfinding: b\n"),
    "alias bomb": committed(_BOMB),
    "empty file committed": committed(""),
    "pack flipped": lambda session: of_packs(session, ".pack", flip),
    "pack cut": lambda session: of_packs(session, ".pack", cut),
    "pack's index flipped": lambda session: of_packs(session, ".idx", flip),
    "pack's index gone": lambda session: of_packs(session, ".idx", gone),
    "pack's index empty": lambda session: of_packs(session, ".idx", emptied),
}
