"""Options that say what an anonymization takes out, and what it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from smp_git.keep.mask import Switches

OfUsers = Annotated[
    list[str], typer.Option("--user", metavar="NAME", help="Another user name to replace")
]
OfProjects = Annotated[
    list[str], typer.Option("--project", metavar="NAME", help="Another project name to replace")
]
KeepUsers = Annotated[bool, typer.Option("--keep-user-names", help="Keep user names")]
KeepProjects = Annotated[bool, typer.Option("--keep-project-names", help="Keep project names")]
KeepPaths = Annotated[bool, typer.Option("--keep-file-paths", help="Keep file paths")]
NoPlaceholders = Annotated[
    bool,
    typer.Option("--no-placeholders", help="Write [REMOVED] instead of User-1 and Project-A"),
]
NoStructure = Annotated[
    bool, typer.Option("--no-structure", help="Drop the links between memories")
]
_NAMES = (
    "user", "project", "keep_user_names", "keep_project_names", "keep_file_paths",
    "no_placeholders", "no_structure",
)  # fmt: skip


def any_of(params: dict[str, Any]) -> bool:
    """Whether one of these options is given."""
    return any(params.get(name) for name in _NAMES)


def switches_of(params: dict[str, Any]) -> Switches:
    """Return what the options of a command say."""
    from smp_git.keep.mask import Switches  # noqa: PLC0415 - few commands take names out

    return Switches(
        user_names=not params["keep_user_names"],
        project_names=not params["keep_project_names"],
        file_paths=not params["keep_file_paths"],
        placeholders=not params["no_placeholders"],
        structure=not params["no_structure"],
        users=tuple(params["user"]),
        projects=tuple(params["project"]),
    )
