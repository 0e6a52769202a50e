"""A regex that is compiled when it is first needed, so that a write without secrets need not wait."""

from __future__ import annotations

import re
from functools import cached_property


class LazyRegex:
    """The verbs of a compiled regex; most texts need few of the many."""

    def __init__(self, source: str, flags: int = 0) -> None:
        self._source = source
        self._flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The regex itself."""
        return re.compile(self._source, self._flags)

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match anywhere."""
        return self.compiled.search(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """Return the match of the whole text."""
        return self.compiled.fullmatch(text)
