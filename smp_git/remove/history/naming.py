"""Names of places as a receipt may keep them: without any word of what was deleted."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

from smp_git.model.ids import is_index, parse_path
from smp_git.remove.history.needles import Version, vocabulary
from smp_git.remove.history.phrases import words

HIDDEN: Final = "…"
# Shorter words say nothing.
_TELLING: Final = 4
# Git makes these names from the subjects of commits.
_MADE_BY_GIT: Final = re.compile(r"(?:v\d+-)?\d{4}-.*\.(?:patch|eml)", re.DOTALL)
_SUFFIX: Final = re.compile(r"\.[A-Za-z0-9]{1,8}(?:\.[A-Za-z0-9]{1,8})?~?")
# Words of the program and of Git, which stand in the files of memories too.
_USUAL: Final = frozenset(
    b"active agent agents agent states artifact artifacts backup branch branches bundle config conversation "
    b"copy decision decisions file files finding findings heads hooks index info learning learnings "
    b"logs main markdown master metadata notes objects orig origin pack packed patch preference "
    b"preferences refs remotes replicas stash state states tags tombstones turn turns yaml".split()
)


class Names:
    """Names of files, branches and tags, told without a word of the deleted."""

    def __init__(self, versions: Iterable[Version] = ()) -> None:
        self._words = vocabulary(versions) - _USUAL

    def file(self, path: str) -> str:
        """Return a path as it may be kept; what is hidden of it is an ellipsis."""
        if parse_path(path) is not None or is_index(path):
            return path
        return "/".join(map(self._part, path.split("/")))

    def _part(self, name: str) -> str:
        if not _MADE_BY_GIT.fullmatch(name) and self._is_plain(name):
            return os.fsencode(name).decode("utf-8", "backslashreplace")
        stem, dot, rest = name.partition(".")
        for suffix in (f"{dot}{rest}" if stem else "", f".{rest.rpartition('.')[2]}"):
            if _SUFFIX.fullmatch(suffix) and self._is_plain(suffix):
                return HIDDEN + suffix
        return HIDDEN

    def _is_plain(self, name: str) -> bool:
        """Whether a name says nothing of the deleted: no word that is telling, and not its words only."""
        found = words(os.fsencode(name.removesuffix(".")))
        if any(len(word) >= _TELLING for word in found if word in self._words):
            return False
        own = [word for word in words(os.fsencode(name.partition(".")[0])) if word not in _USUAL]
        return not own or not self._words.issuperset(own)
