"""A session in which every text that a page shows tries to be more than text."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Final

from smp_git import Session, Store
from tests.support import own

# Whatever runs of it changes the title of the page.
RAN: Final = "document.title='RAN'"
TEXTS: Final = (
    f"<script>{RAN}</script>",
    f'"><img src=x onerror="{RAN}">',
    f"'><svg onload={RAN}>",
    f"</textarea></title></style></script><script>{RAN}</script>",
    f"javascript:{RAN}",
    "{{ 7 * 7 }}{% raw %}${7*7}",
    "\u202e\u2066reversed\u0007\u0085\ufdd0 <b>bold</b> &lt;i&gt; &amp;",
    "x" * 3000,
    "<!-- --><![CDATA[ <a href='http://evil.example/'>a</a>",
)


def hostile_session(store: Store) -> Session:
    """Return a session with hostile texts in every field that takes free text."""
    session = store.create_session(
        "hostile",
        user=TEXTS[0],
        context={"project_name": TEXTS[1], TEXTS[3][:20]: TEXTS[2]},
        overrides={"redaction": "off"},
    )
    for number, text in enumerate(TEXTS):
        session.add("turn", text, agent="ada", speaker=text, topic=text)
        finding = session.add(
            "finding", text, severity="critical", category=text, evidence=[text, {"k": text}],
            location={"file": text}, recommendation=text, root_cause=text,
        )  # fmt: skip
        session.add(
            "decision", text, title=text, rationale=text, made_by=text, agreed_by=[text],
            alternatives=[{"option": text}], links=[("references", finding.id)],
        )  # fmt: skip
        session.add("preference", text, category=text, key=f"{number}", value=text)
        session.add("artifact", text, name=text, media_type=text, type="code")
    session.edit("DEC-1", rationale=TEXTS[3], **own(own=TEXTS[1]))
    session.resolve("FIND-1", action=TEXTS[2], by=TEXTS[0])
    session.set_state("ada", {"working_memory": {"note": TEXTS[1]}})
    with session.transaction(reason=TEXTS[0]) as tx:
        tx.edit("DEC-2", impact=TEXTS[1])
    with session.branch("idea") as aside:
        aside.edit("DEC-1", impact=TEXTS[0])
        aside.add("finding", TEXTS[1])
    session.edit("DEC-1", impact=TEXTS[2])
    session.tag("before")
    gone = session.add("learning", TEXTS[3])
    session.delete(gone.id, reason=TEXTS[1], by="ada")
    return session


class Page(HTMLParser):
    """What a browser makes of a page: its elements, and what of them could run or load."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.scripts: list[str] = []
        self.hrefs: list[str] = []
        self.ids: list[str] = []
        self.suspicious: list[str] = []
        self.text: list[str] = []
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag in ("script", "style"):
            self._inside.append(tag)
            self.scripts.append(found.get("src") or "")
        if "href" in found:
            self.hrefs.append(found["href"] or "")
        if found.get("id"):
            self.ids.append(found["id"] or "")
        self.suspicious += [
            f"{tag} {name}={value}"
            for name, value in attrs
            if name.startswith("on") or name in ("style", "srcdoc", "background", "ping")
        ]
        if tag in ("iframe", "object", "embed", "base", "img", "video", "audio", "b", "i"):
            self.suspicious.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.text.append(data)
