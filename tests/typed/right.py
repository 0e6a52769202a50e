"""Right uses: a type checker finds nothing here. Only read, never run."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from smp_git import Answer, Context, Hit, Memory, Receipt, Session, Store


def writes(session: Session, more: dict[str, Any]) -> Memory:
    session.add("turn", "Hello", role="user", tokens=3, at=date(2026, 1, 11))
    found = session.add("finding", "No second factor", severity="critical", confidence=0.9)
    session.add("decision", "Ask for one", links=[("resolves", found.id)], agreed_by=["ada"])
    # Fields of one's own go through a mapping.
    session.add("artifact", "A report", media_type="text/markdown", **more)
    session.edit(found.id, severity=None, category="login")
    with session.transaction() as tx:
        tx.supersede(found.id, "No second factor anywhere", severity="high")
    return found


def reads(store: Store) -> tuple[str, float, str]:
    with Store() as here, here.session("shop", create=True) as session:
        answer: Answer = session.query("login", kinds=["finding"], since=timedelta(days=7))
        best: Hit = answer[0]
        session.memories("state", at=datetime.now(UTC))
        context: Context = session.context(prompt="the login", budget=2000)
        gone: Receipt = session.delete(best.id, reason="done")
        assert gone.ids
    return best.content, best.score, str(context) + str(store.path)
