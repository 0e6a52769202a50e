"""libgit2 through pygit2, loaded by the first who needs it: that takes longer than most questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from smp_git.model.errors import FormatError

if TYPE_CHECKING:
    from pygit2 import Commit as Commit
    from pygit2 import Config as Config
    from pygit2 import GitError as GitError
    from pygit2 import Index as Index
    from pygit2 import IndexEntry as IndexEntry
    from pygit2 import Odb as Odb
    from pygit2 import OdbBackendPack as OdbBackendPack
    from pygit2 import Oid as Oid
    from pygit2 import Repository as Repository
    from pygit2 import enums as enums

# Older ones follow redirects with credentials and read out of bounds.
_OLDEST: Final = (1, 9, 5)


def __getattr__(name: str) -> object:
    import pygit2  # noqa: PLC0415 - the point of this room
    from pygit2.enums import Option  # noqa: PLC0415 - as above

    if pygit2.LIBGIT2_VER < _OLDEST:
        raise FormatError(
            f"libgit2 {pygit2.LIBGIT2_VERSION} is older than 1.9.5, which this program needs",
            hint="install the pygit2 wheel of this environment: pip install --upgrade pygit2",
        )
    # Has to happen before the first repository is opened: its reference store copies the flag.
    pygit2.option(Option.ENABLE_FSYNC_GITDIR, True)  # noqa: FBT003 - pygit2's own signature
    value: object = getattr(pygit2, name)
    globals()[name] = value
    return value
