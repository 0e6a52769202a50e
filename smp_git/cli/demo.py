"""A first session: three agents at work on a shop, told step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from smp_git.cli.app import command
from smp_git.cli.common import emit, folder
from smp_git.cli.history import difference
from smp_git.model.errors import RefusedError
from smp_git.session import Session
from smp_git.store import Store


class Telling(NamedTuple):
    """The result of the demo, and the place of its session."""

    store: Path
    session: str
    path: Path
    text: str


def run(folder: Path) -> Telling:
    """Make a session in the store at `folder`, work in it, and tell what happened."""
    store = Store.init(folder)
    with store.create_session(
        user="ada",
        agents=["bmad-master", "veritas", "architect"],
        context={"project_name": "Shop"},
        tags=["demo"],
    ) as session:
        lines = [
            f"store    {store.path}",
            f"session  {session.id}, a Git repository",
            "",
            *_talk(session),
            "",
            *_decide(session),
            "",
            *_change(session),
            "",
            *_look(session),
            "",
            *_forget(session),
        ]
        lines += [
            "",
            "See for yourself:",
            f"  git -C {session.path} log --stat",
            f"  smp --root {store.path} -s {session.id} list",
        ]
        return Telling(store.path, session.id, session.path, "\n".join(lines))


def _talk(session: Session) -> list[str]:
    said = [
        ("ada", "Let's review the authentication requirements of the shop."),
        ("bmad-master", "Veritas verifies them, the architect judges what is feasible."),
        ("veritas", "Two concerns in section 3.2: no MFA, and no session timeout."),
        ("ada", "MFA for administrators, optional for customers."),
    ]
    lines = ["Three agents and a person talk:"]
    for speaker, text in said:
        turn = session.add("turn", text, agent=speaker)
        lines.append(f"  {turn.id}  {speaker}: {text}")
    return lines


def _decide(session: Session) -> list[str]:
    lines = ["What they find, learn and decide, some of it in one commit:"]
    with session.transaction(agent="veritas", reason="verification") as tx:
        mfa = tx.add(
            "finding",
            "No MFA requirement for administrators",
            severity="critical",
            tags=["security.authentication"],
            turn_ref="turn-0003",
        )
        timeout = tx.add(
            "finding",
            "Session timeout not defined",
            severity="important",
            tags=["security.session"],
            turn_ref="turn-0003",
        )
        tx.set_state("veritas", {"working_memory": {"open_concerns": [mfa.id, timeout.id]}})
    wish = session.add(
        "preference",
        "MFA required for administrators, optional for customers",
        agent="bmad-master",
        category="policy",
        key="mfa",
        confidence="explicit",
        turn_ref="turn-0004",
    )
    token = session.add(
        "decision",
        "Use OAuth 2.0 with JWT tokens",
        agent="architect",
        tags=["security.authentication", "architecture"],
        rationale="Industry standard, and ready for single sign-on",
        impact="high",
        links=[("resolves", mfa.id), ("influenced", wish.id)],
    )
    return lines + [f"  {memory.id}  {memory.title}" for memory in (mfa, timeout, wish, token)]


def _change(session: Session) -> list[str]:
    session.resolve("FIND-0001", agent="veritas", action="MFA is in the requirements now", by="ada")
    session.edit("DEC-0001", agent="architect", impact="medium")
    session.undo(agent="architect")
    session.add(
        "decision",
        "Sessions end after 15 minutes",
        agent="architect",
        tags=["security.session"],
        links=[("resolves", "FIND-0002")],
    )
    return [
        "A finding is resolved; a change of mind is undone; one more decision is made.",
        *(
            f"  {version.commit[:7]}  {version.agent:<9}  {version.subject}"
            for version in session.log(limit=4)
        ),
    ]


def _look(session: Session) -> list[str]:
    lines = ["What changed in the last four writes, memory by memory:"]
    for item in session.diff("HEAD~4", "HEAD"):
        lines += [f"  {line}" for line in difference(item)]
    asked = session.query(
        "session timeout", kinds=["finding"], where=[("status", "equals", "open")]
    )
    answers = [f"{hit.id} {hit.title} (score {hit.score:.2f})" for hit in asked]
    before = session.get("FIND-0001", at="HEAD~4").status
    return [
        *lines,
        "",
        f"Open findings about a session timeout: {'; '.join(answers)}.",
        f"FIND-0001 four writes ago: {before}. Nothing is wrong with the session: {session.check() == ()}.",
    ]


def _forget(session: Session) -> list[str]:
    private = session.add(
        "learning", "Ada is on sick leave until the third of May", agent="bmad-master"
    )
    session.edit(
        private.id, agent="bmad-master", text="Ada is on sick leave until the tenth of May"
    )
    try:
        receipt = session.delete(private.id, reason="private", by="ada")
    except RefusedError:
        # Without a lasting place for the key there is no sealed copy to restore from.
        receipt = session.delete(private.id, reason="private", by="ada", purge=True)
    found = sum("sick leave" in version.subject for version in session.log())
    return [
        f"{private.id} contained something private; it was deleted, from the history too.",
        f"  searched {receipt.proof.objects} objects and {receipt.proof.files} files: "
        f"{'nothing found' if receipt.proof.clean else 'FOUND'}; {found} commits of {len(session.log())} mention it",
    ]


@command(example="smp demo")
def demo(
    ctx: typer.Context,
    path: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="Folder of the demo's store")
    ] = Path("smp-demo"),
) -> None:
    """Run a sample session and leave it on disk

    Three agents write turns, decisions, findings and preferences; the demo then reads,
    changes, compares and undoes them. The result is an ordinary Git repository.
    """
    told = run(folder(ctx) / path)
    emit(
        ctx, {"store": str(told.store), "session": told.session, "path": str(told.path)}, told.text
    )
