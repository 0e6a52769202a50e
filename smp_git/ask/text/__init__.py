"""Full-text search and similarity over the memories of a session."""

from smp_git.ask.text.cache import SearchCache, search
from smp_git.ask.text.documents import Document, Reason, TextHit
from smp_git.ask.text.meanings import Encoder, find_encoder
from smp_git.ask.text.questions import asked_words
from smp_git.ask.text.snippets import snippet
from smp_git.ask.text.stems import stem
from smp_git.ask.text.words import words

__all__ = [
    "Document",
    "Encoder",
    "Reason",
    "SearchCache",
    "TextHit",
    "asked_words",
    "find_encoder",
    "search",
    "snippet",
    "stem",
    "words",
]
