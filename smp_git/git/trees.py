"""A tree with some files changed: only what lies above them is made anew."""

from __future__ import annotations

from collections.abc import Mapping

from smp_git.git.objects import (
    EMPTY_TREE,
    FILE_MODE,
    FOLDER_MODE,
    TREE,
    Child,
    Object,
    ObjectId,
    write_tree,
)
from smp_git.git.repository import Repository


def with_files(
    repository: Repository, root: ObjectId, edits: Mapping[str, ObjectId | None]
) -> tuple[ObjectId, list[Object]]:
    """Return the tree `root` with files set (None: removed), and the new tree objects.

    A folder without files vanishes, as in Git.
    """
    made: list[Object] = []
    new_root = _edit(repository, root, edits, made)
    if new_root is None:
        made.append(Object(TREE, b""))
        return EMPTY_TREE, made
    return new_root, made


def _edit(
    repository: Repository,
    tree_id: ObjectId | None,
    edits: Mapping[str, ObjectId | None],
    made: list[Object],
) -> ObjectId | None:
    children = dict(repository.tree(tree_id)) if tree_id not in (None, EMPTY_TREE) else {}
    below: dict[str, dict[str, ObjectId | None]] = {}
    for path, blob in edits.items():
        name, _, rest = path.partition("/")
        if rest:
            below.setdefault(name, {})[rest] = blob
        else:
            _set(children, name, blob, FILE_MODE)
    for name, inner in below.items():
        child = children.get(name)
        folder = child.id if child is not None and child.mode == FOLDER_MODE else None
        _set(children, name, _edit(repository, folder, inner, made), FOLDER_MODE)
    if not children:
        return None
    tree = Object(TREE, write_tree(children))
    made.append(tree)
    name = tree.id
    repository.know_tree(name, children)
    return name


def _set(children: dict[str, Child], name: str, object_id: ObjectId | None, mode: str) -> None:
    if object_id is None:
        children.pop(name, None)
    else:
        children[name] = Child(mode, object_id)
