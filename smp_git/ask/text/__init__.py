"""Full-text search and similarity over the memories of a session."""

from smp_git.ask.text.cache import SearchCache, search
from smp_git.ask.text.documents import Document, Reason, TextHit
from smp_git.ask.text.meanings import (
    Encoder,
    EncoderUnfitError,
    Meanings,
    find_encoder,
    meaning_text,
)
from smp_git.ask.text.questions import asked_words
from smp_git.ask.text.snippets import snippet
from smp_git.ask.text.stems import stem
from smp_git.ask.text.vectors import keep_vectors
from smp_git.ask.text.words import words

__all__ = [
    "Document",
    "Encoder",
    "EncoderUnfitError",
    "Meanings",
    "Reason",
    "SearchCache",
    "TextHit",
    "asked_words",
    "find_encoder",
    "keep_vectors",
    "meaning_text",
    "search",
    "snippet",
    "stem",
    "words",
]
