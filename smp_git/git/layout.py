"""The local files of a session's repository: its settings, attributes and hooks."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

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
[diff]
	renames = false
[rerere]
	enabled = false
"""
# Outranks the tracked attributes, so that no file of a session can ask for a filter.
_ATTRIBUTES: Final = "* -text -eol -ident -filter -working-tree-encoding\n"

TRACKED: Final = {
    ".gitattributes": b"* -text -merge\nindex.yaml -text -merge -diff\n",
    ".gitignore": b".DS_Store\n*~\n.*.swp\n",
}


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


def install_hooks(folder: Path) -> None:
    """Copy the session's hooks into `folder`, leaving what a person put there."""
    for hook in hook_files():
        target = folder / hook.name
        if not target.exists():
            target.write_bytes(hook.read_bytes())
            target.chmod(0o700)


def hook_files() -> list[Path]:
    """Return the hooks that travel with this package."""
    packaged = Path(str(resources.files("smp_git"))) / "hooks"
    folder = packaged if packaged.is_dir() else packaged.parent.parent / "hooks"
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.suffix)
