"""Branches, and what a merge of each would do; tags, and what is contested."""

from __future__ import annotations

from dataclasses import dataclass

from smp_git.model.errors import SmpError
from smp_git.web.look import Look
from smp_git.web.views.compare import Differences, differences
from smp_git.write.branches import Branch, Contested, Tag
from smp_git.write.merge.join import MergePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchView:
    """A branch, and what merging it would do; `problem` says why nothing can be said."""

    branch: Branch
    plan: MergePlan | None
    differences: Differences | None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branches:
    """The branches besides the one that is looked at, the tags, and what is contested."""

    current: str
    others: tuple[BranchView, ...]
    tags: tuple[Tag, ...]
    contested: tuple[Contested, ...]


def branches(look: Look) -> Branches:
    """Return the branches of a session, and what merges would do."""
    session = look.session
    return Branches(
        current=session.current_branch,
        others=tuple(
            branch(look, each) for each in session.branches() if each.name != session.current_branch
        ),
        tags=session.tags(),
        contested=session.conflicts(),
    )


def branch(look: Look, found: Branch) -> BranchView:
    """Return what merging a branch would do."""
    try:
        plan = look.session.merge(found.name, dry_run=True)
    except SmpError as error:
        return BranchView(branch=found, plan=None, differences=None, problem=error.message)
    return BranchView(branch=found, plan=plan, differences=differences(plan.memories))
