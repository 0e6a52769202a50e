"""Git's index as libgit2 reads it."""

from __future__ import annotations

import pygit2


class IndexFile(pygit2.Index):
    """Git's index in a file; raises pygit2.GitError if it cannot be read, and says nothing else.

    pygit2 1.20 prints an exception when it lets go of one that could not be opened.
    """

    def __del__(self) -> None:
        if hasattr(self, "_index"):
            super().__del__()
