"""Wrong uses: a type checker names each line that ends in `# wrong`. Only read, never run."""
# mypy: ignore-errors

from __future__ import annotations

from smp_git import Session, Store


def writes(session: Session) -> None:
    session.add("discovery", "No such kind")  # wrong
    session.add("state", "Not added, but set")  # wrong
    session.add("finding", "No such field", sevrity="high")  # wrong
    session.add("finding", "No such severity", severity="awful")  # wrong
    session.add("decision", "No flag", reversible="yes")  # wrong
    session.add("turn", "No count", tokens="three")  # wrong
    session.add("finding", 17)  # wrong
    session.add("finding", "No time", at=17)  # wrong
    session.edit("FIND-0001", severty="high")  # wrong
    session.supersede("FIND-0001", "Again", pinned="always")  # wrong
    with session.transaction() as tx:
        tx.add("thought", "No such kind")  # wrong
        tx.edit("FIND-0001", rationale=17)  # wrong


def reads(session: Session) -> None:
    session.query("login", kinds=["findings of all kinds"])  # wrong
    session.query("login", kinde=["finding"])  # wrong
    session.query("login", limit="all")  # wrong
    session.memories("discovery")  # wrong
    print(session.query("login")[0].contents)  # wrong
    session.context(prompt="login", budget="much")  # wrong
    session.delete(kinds=["discovery"])  # wrong
    print(session.delete("FIND-0001").plan)  # wrong
    Store.open().session("shop", make=True)  # wrong
