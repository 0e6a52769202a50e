"""Files in a session's `.git` that are not objects: settings, attributes, hooks, scratch folders."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Final

from smp_git.format import readme, records
from smp_git.git import disk, libgit2
from smp_git.git.locks import locked
from smp_git.model.errors import InvalidError, LockedError, shown

# Nothing here depends on the user's own configuration, and nothing of it reaches in:
# no conversion of line ends, no background gc, no rename detection.
_CONFIG: Final = """\
[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
	autocrlf = false
	safecrlf = false
	symlinks = false
	hooksPath = .git/hooks
	fsync = objects,reference
[gc]
	auto = 0
[maintenance]
	auto = false
[merge]
	renames = false
[merge "smp"]
	name = memories field by field
	driver = smp hook merge %O %A %B %P
[diff]
	renames = false
[rerere]
	enabled = false
"""
_SCRATCH_CONFIG: Final = """\
[core]
	repositoryformatversion = 0
	bare = true
	logallrefupdates = false
[gc]
	auto = 0
"""
_VERSION: Final = "core.repositoryformatversion"
_HEAD_FORM: Final = re.compile(r"ref: refs/\S+\s*|[0-9a-f]{40}\s*")
# Outranks the tracked attributes, so that no file of a session can ask for a filter.
# A merge goes memory by memory and field by field.
_ATTRIBUTES: Final = "* -text -eol -ident -filter -working-tree-encoding merge=smp\n"
_OLD_ATTRIBUTES: Final = "* -text -eol -ident -filter -working-tree-encoding\n"
_MERGE: Final = {
    "merge.renames": "false",
    "merge.smp.name": "memories field by field",
    "merge.smp.driver": "smp hook merge %O %A %B %P",
}
# Where the scripts are, below the folder of the hooks.
SESSION: Final = ""
SERVER: Final = "server"
# The state of a hook: as it is installed, as an earlier version installed it, a person's, not.
CURRENT: Final = "installed"
OLDER: Final = "older"
OWN: Final = "your own"
MISSING: Final = "missing"
_CALL: Final = b"smp hook "

ATTRIBUTES: Final = ".gitattributes"
TRACKED: Final = {
    ATTRIBUTES: b"* -text -merge\nindex.yaml -text -merge -diff\n",
    ".gitignore": b".DS_Store\n*~\n.*.swp\n",
}
# Those of a session with a README: forges fold what is generated, and where plain Git merges
# without the program's driver, the README is in nobody's way.
WITH_README: Final = (
    TRACKED[ATTRIBUTES].removesuffix(b"\n")
    + b" linguist-generated gitlab-generated\n"
    + f"/{records.PATH} linguist-generated gitlab-generated\n".encode()
    + f"/{readme.PATH} merge=union linguist-generated gitlab-generated\n".encode()
)


def create(path: Path) -> None:
    """Make an empty repository at `path`, which must not hold one."""
    git = path / ".git"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    git.mkdir(mode=0o700)
    for folder in (
        "objects/info",
        "objects/pack",
        "refs/heads",
        "refs/tags",
        "info",
        "hooks",
        "smp",
    ):
        (git / folder).mkdir(mode=0o700, parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text(_CONFIG)
    (git / "info" / "attributes").write_text(_ATTRIBUTES)
    (git / "info" / "exclude").write_text("")
    install_hooks(git / "hooks")


def unfit(place: Path | str) -> InvalidError:
    """Return the error for a path whose letters Git cannot be told."""
    return InvalidError(
        f"{shown(str(place))}: Git cannot be given a path with such letters",
        hint="rename the folder",
    )


def create_scratch(git: Path, objects: Iterable[Path]) -> None:
    """Make an empty repository at `git` that reads the objects of other folders too."""
    for folder in ("objects/info", "objects/pack", "refs/heads"):
        # What is not there when a repository is opened is never looked into.
        (git / folder).mkdir(mode=0o700, parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text(_SCRATCH_CONFIG)
    places = [folder.resolve() for folder in objects]
    for place in places:
        if "\n" in f"{place}" or "\r" in f"{place}":
            raise unfit(place.parent.parent)
    alternates = git / "objects" / "info" / "alternates"
    alternates.write_bytes(b"".join(os.fsencode(place) + b"\n" for place in places))


def configure(git: Path) -> None:
    """Write the settings of a session anew, durable."""
    disk.replace_durably(git / "config", _CONFIG.encode(), git / "smp" / "config.tmp")


def is_configured(git: Path) -> bool:
    """Whether Git's settings of a session can be read and say that it has files."""
    try:
        config = libgit2.Config(str(git / "config"))
        return not config.get_bool("core.bare") and config.get_int(_VERSION) in (0, 1)
    except (libgit2.GitError, KeyError, ValueError):
        return False


def is_head_named(git: Path) -> bool:
    """Whether HEAD names a branch or a commit."""
    file = git / "HEAD"
    text = file.read_bytes().decode("utf-8", "replace") if file.is_file() else ""
    return _HEAD_FORM.fullmatch(text) is not None


def install_hooks(folder: Path) -> list[str]:
    """Copy the session's hooks into `folder`; return those in whose place a person's own are."""
    folder.mkdir(mode=0o700, exist_ok=True)
    states = hooks(folder)
    for hook in hook_files():
        if states[hook.name] != OWN:
            _copy(hook, folder)
    return [name for name, state in states.items() if state == OWN]


def install_server_hooks(bare: Path) -> list[str]:
    """Copy the hooks of a server into a bare repository; return those in whose place another's are."""
    states = hooks(bare / "hooks", SERVER)
    (bare / "hooks").mkdir(exist_ok=True)
    for hook in hook_files(SERVER):
        if states[hook.name] != OWN:
            _copy(hook, bare / "hooks")
    config = libgit2.Config(str(bare / "config"))
    config["smp.python"] = sys.executable
    return [name for name, state in states.items() if state == OWN]


def _copy(hook: Path, folder: Path) -> None:
    target = folder / hook.name
    target.unlink(missing_ok=True)
    target.write_bytes(hook.read_bytes())
    target.chmod(0o700)


def remove_hooks(folder: Path, where: str = SESSION) -> list[str]:
    """Remove the hooks that came with this package; return their names."""
    gone = [name for name, state in hooks(folder, where).items() if state in (CURRENT, OLDER)]
    for name in gone:
        (folder / name).unlink()
    return gone


def hooks(folder: Path, where: str = SESSION) -> dict[str, str]:
    """Return the state of each hook in `folder`."""
    return {hook.name: _state(folder / hook.name, hook) for hook in hook_files(where)}


def _state(target: Path, hook: Path) -> str:
    try:
        data = target.read_bytes()
    except FileNotFoundError:
        return MISSING
    if data == hook.read_bytes():
        return CURRENT
    return OLDER if _CALL in data else OWN


def set_up(git: Path) -> None:
    """Give a repository the attributes and the merge driver that a session is made with."""
    (git / "smp").mkdir(mode=0o700, exist_ok=True)
    file = git / "info" / "attributes"
    file.parent.mkdir(exist_ok=True)
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    if _ATTRIBUTES not in lines:
        file.write_text("".join(line for line in lines if line != _OLD_ATTRIBUTES) + _ATTRIBUTES)
    config = libgit2.Config(str(git / "config"))
    for name, value in _MERGE.items():
        config[name] = value


def hook_files(where: str = SESSION) -> list[Path]:
    """Return the hooks that travel with this package, for a session or for a server."""
    packaged = Path(__file__).parents[1] / "hooks"
    top = packaged if packaged.is_dir() else packaged.parent.parent / "hooks"
    folder = top / where
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.suffix)


PLACE: Final = Path("syncing") / "incoming"
_LOCK: Final = "lock"
_PATIENCE_SECONDS: Final = 30.0


@contextmanager
def scratch_folder(git: Path) -> Iterator[Path]:
    """Yield a new folder of a session that is removed at the end, or by the next who looks."""
    place = git / PLACE
    sweep_scratch(git)
    disk.make_folders(place)
    made = place / os.urandom(8).hex()
    with ExitStack() as use:
        with _alone(place):
            made.mkdir(mode=0o700)
            use.enter_context(_alone(made))
        use.callback(disk.remove_folder, made)
        yield made


def sweep_scratch(git: Path) -> int:
    """Remove the folders whose owners are gone; return how many."""
    place = git / PLACE
    if not place.is_dir():
        return 0
    count = 0
    with _alone(place):
        for each in place.iterdir():
            if each.is_dir() and not _is_in_use(each):
                disk.remove_folder(each)
                count += 1
    return count


def _alone(place: Path) -> AbstractContextManager[None]:
    return locked(place / _LOCK, time.monotonic() + _PATIENCE_SECONDS, "syncing")


def _is_in_use(made: Path) -> bool:
    try:
        with locked(made / _LOCK, time.monotonic(), "sweeping"):
            return False
    except LockedError:
        return True
