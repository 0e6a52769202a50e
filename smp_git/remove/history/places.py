"""Every place of a store that ever holds content, and its name in a receipt.

Whoever writes a file below a store gives it a line here: what deletes, purges, redacts and
verifies goes by this list, and a test fails for a file that no line explains.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.format import readme, records
from smp_git.format.metadata import PATH as METADATA
from smp_git.model.ids import is_index, parse_path
from smp_git.model.memory import KINDS
from smp_git.remove.history.search import DeadVersion, vocabulary, words

HIDDEN: Final = "…"
# Shorter words say nothing.
_TELLING: Final = 4
# Git makes these names from the subjects of commits.
_MADE_BY_GIT: Final = re.compile(r"(?:v\d+-)?\d{4}-.*\.(?:patch|eml)", re.DOTALL)
_SUFFIX: Final = re.compile(r"\.[A-Za-z0-9]{1,8}(?:\.[A-Za-z0-9]{1,8})?~?")
# Words of the program and of Git, which are in the files of memories too.
_USUAL: Final = frozenset(
    b"active agent agents agent states artifact artifacts backup branch branches bundle config conversation "
    b"copy decision decisions file files finding findings heads hooks index info learning learnings "
    b"logs main markdown master metadata notes objects orig origin pack packed patch preference "
    b"preferences refs remotes replicas stash state states tags tombstones turn turns yaml".split()
)


class PlaceNames:
    """Names of files, branches and tags, told without a word of the deleted."""

    def __init__(self, versions: Iterable[DeadVersion] = ()) -> None:
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


class Care(Enum):
    """Treatment of the deleted in a place, and its proof."""

    REWRITTEN = "taken out by the rewrite; searched by the proof"
    DROPPED = "removed by a deletion; searched by the proof"
    SEARCHED = "nothing is taken out; searched by the proof, and named"
    SEALED = "encrypted: destroyed with its key by a purge"
    PASSING = "there only while an operation is under way, which removes it"
    WHOLE = "another session, deleted as a whole: purge-session removes it"
    NOTHING = "no content"


class Place(NamedTuple):
    """Files below a store: `*` is a part of one name, `**` any number of names."""

    pattern: str
    care: Care
    what: str


_SESSION: Final = "{session}"
BESIDE: Final = f"{_SESSION}/**"
# The first that fits counts.
PLACES: Final = (
    Place("config.yaml", Care.NOTHING, "the settings"),
    Place(".config.yaml.tmp", Care.PASSING, "the settings, being written"),
    Place(".gitignore", Care.NOTHING, "keeps the store out of a project's own commits"),
    Place(".current/*", Care.NOTHING, "which session a terminal means"),
    Place(".lock/**", Care.NOTHING, "locks of the store"),
    Place("log.jsonl", Care.NOTHING, "what was done, without content"),
    Place("log.jsonl.1", Care.NOTHING, "what was done before that"),
    Place("audit.jsonl", Care.SEARCHED, "who deleted what, and reasons"),
    Place("archived/.new-*/**", Care.PASSING, "an archive that is being made or unpacked"),
    Place("archived/.gone-*/**", Care.PASSING, "a session or an archive that is being removed"),
    Place(f"archived/{_SESSION}/summary.yaml", Care.SEARCHED, "what is kept of an archived session"),
    Place(f"archived/{_SESSION}/archive.tar.gz", Care.SEARCHED, "an archived session: what concerns it is done to the session restored"),
    Place(f"archived/{_SESSION}/remotes.json", Care.NOTHING, "what was last seen of the remotes of an archived session"),
    Place(f"archived/{_SESSION}/origin.json", Care.NOTHING, "which folder an archive was made in"),
    Place(f"deleted/{_SESSION}/*/archive/**", Care.WHOLE, "an archived session that was deleted"),
    Place(f"deleted/{_SESSION}/.new-*/**", Care.PASSING, "a copy that is being sealed"),
    Place(f"deleted/{_SESSION}/.kept-*/**", Care.PASSING, "a copy whose deletion is under way"),
    Place(f"deleted/{_SESSION}/*-redact/**", Care.PASSING, "texts on their way back from a redaction"),
    Place(f"deleted/{_SESSION}/*/record.yaml", Care.SEARCHED, "the record of a deletion, and its reason"),
    Place(f"deleted/{_SESSION}/*/receipt.json", Care.SEARCHED, "the receipt of a deletion"),
    Place(f"deleted/{_SESSION}/*/*.sealed", Care.SEALED, "the copy that can be restored"),
    Place(f"deleted/{_SESSION}/*/session/**", Care.WHOLE, "a session that was deleted"),
    Place(f"{_SESSION}/.git/objects/**", Care.REWRITTEN, "history"),
    Place(f"{_SESSION}/.git/smp/**", Care.DROPPED, "what a replica keeps for itself; smp_git/read/replica.py has the names"),
    Place(f"{_SESSION}/.git/syncing/**", Care.PASSING, "what a sync has fetched"),
    Place(f"{_SESSION}/.git/erasing/lock", Care.NOTHING, "the lock of deletions"),
    Place(f"{_SESSION}/.git/logs/**", Care.DROPPED, "the logs of references; the stash's is rewritten"),
    Place(f"{_SESSION}/.git/refs/**", Care.REWRITTEN, "references, those for rescue too"),
    Place(f"{_SESSION}/.git/packed-refs", Care.REWRITTEN, "references"),
    Place(f"{_SESSION}/.git/index", Care.REWRITTEN, "what a person staged"),
    Place(f"{_SESSION}/.git/HEAD", Care.NOTHING, "which branch is checked out"),
    Place(f"{_SESSION}/.git/hooks/*", Care.SEARCHED, "hooks"),
    Place(f"{_SESSION}/.git/info/*", Care.SEARCHED, "what Git leaves out and how it merges"),
    Place(f"{_SESSION}/.git/config", Care.SEARCHED, "settings and remotes"),
    Place(f"{_SESSION}/.git/description", Care.SEARCHED, "Git's word about a repository"),
    Place(f"{_SESSION}/.git/*.lock", Care.PASSING, "Git's locks"),
    Place(f"{_SESSION}/.git/gc.*", Care.DROPPED, "what Git's gc says of itself"),
    Place(f"{_SESSION}/.git/*_HEAD", Care.DROPPED, "where Git's last commands began"),
    Place(f"{_SESSION}/.git/*MSG", Care.DROPPED, "messages of Git's last commands"),
    Place(f"{_SESSION}/.git/*_RR", Care.DROPPED, "resolutions of conflicts"),
    *(Place(f"{_SESSION}/{kind.folder}/**", Care.REWRITTEN, f"each {kind.name}, and its page's index") for kind in KINDS.values()),
    Place(f"{_SESSION}/{METADATA}", Care.SEARCHED, "what is known of the session"),
    Place(f"{_SESSION}/{records.PATH}", Care.NOTHING, "what was deleted"),
    Place(f"{_SESSION}/{readme.PATH}", Care.REWRITTEN, "what a forge shows: counts and ids, or a person's own text"),
    Place(f"{_SESSION}/replicas/*.yaml", Care.NOTHING, "who writes here"),
    Place(f"{_SESSION}/.gitattributes", Care.NOTHING, "how Git merges"),
    Place(f"{_SESSION}/.gitignore", Care.NOTHING, "what Git leaves out"),
    Place(BESIDE, Care.SEARCHED, "what a person put beside the memories"),
)  # fmt: skip
# Where sessions are, from the store on.
_HOMES: Final = ("active/*", "global")


class Beside(NamedTuple):
    """A file that belongs to a session and is not in its folder."""

    path: Path
    name: str


def place_of(path: str) -> Place | None:
    """Return the line that explains a file of a store, None if none does."""
    return next((place for place in PLACES if _pattern(place).fullmatch(path)), None)


def beside(session: Path) -> Iterator[Beside]:
    """Yield the files outside a session's folder that may hold what was deleted from it."""
    store = session.parent if session.parent.name != "active" else session.parent.parent
    if not (store / "config.yaml").is_file():
        return
    for place in PLACES:
        if place.care is Care.SEARCHED and not place.pattern.startswith(_SESSION):
            for path in sorted(store.glob(place.pattern.replace(_SESSION, _literal(session.name)))):
                name = path.relative_to(store).as_posix()
                if place_of(name) is place:
                    yield Beside(path, name)


def _literal(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)


@cache
def _pattern(place: Place) -> re.Pattern[str]:
    text = place.pattern
    if text.startswith(_SESSION):
        homes = "|".join(_regex(home) for home in _HOMES)
        return re.compile(f"(?:{homes}){_regex(text.removeprefix(_SESSION))}", re.DOTALL)
    return re.compile(_regex(text.replace(_SESSION, "*")), re.DOTALL)


def _regex(pattern: str) -> str:
    return re.escape(pattern).replace(r"\*\*", ".*").replace(r"\*", "[^/]*")
