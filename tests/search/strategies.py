"""All Hypothesis strategies of the search tests."""

from __future__ import annotations

from hypothesis import strategies as st

from smp_git.ask.text.batches import Document

WORDS = [
    "deploy",
    "deployed",
    "cache",
    "went",
    "go",
    "café",
    "naïve",
    "redis",
    "Ana's",
    "3",
    "the",
    "what",
    "May",
    "東京",
]

sentences = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)


@st.composite
def documents(draw: st.DrawFn, number: int) -> Document:
    return Document(
        id=f"turn-{number}",
        kind=draw(st.sampled_from(["turn", "turn", "decision"])),
        at=f"2023-05-{draw(st.integers(1, 28)):02}T{draw(st.integers(0, 23)):02}:00:00Z",
        text=draw(sentences),
        title=draw(st.sampled_from(["", "Redis cache"])),
        tags=draw(st.sampled_from([(), ("deploy", "ops")])),
        speaker=draw(st.sampled_from(["Ana", "Bo", ""])),
        role=draw(st.sampled_from(["user", ""])),
        sitting=draw(st.sampled_from(["", "", "one"])),
    )


@st.composite
def page_states(draw: st.DrawFn) -> dict[str, tuple[Document, ...]]:
    """Pages of documents, ten numbers to a page."""
    pages: dict[str, tuple[Document, ...]] = {}
    for page in draw(st.sets(st.integers(0, 3), max_size=4)):
        numbers = sorted(draw(st.sets(st.integers(10 * page, 10 * page + 9), max_size=4)))
        pages[f"conversation/{page:03}"] = tuple(draw(documents(n)) for n in numbers)
    return pages


questions = st.one_of(
    sentences,
    st.text(max_size=30),
    st.sampled_from(
        [
            "what did Ana deploy in May 2023",
            '"redis cache"',
            "dep*",
            "when did I go on 3 May",
            "Ana",
        ]
    ),
)
