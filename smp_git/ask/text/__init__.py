"""Full-text search and similarity over the memories of a session."""

from smp_git.ask.text.batches import Document
from smp_git.ask.text.cache import Followed, SearchCache, search
from smp_git.ask.text.meanings import (
    Encoder,
    EncoderUnfitError,
    Meanings,
    find_encoder,
    keep_vectors,
    meaning_text,
)
from smp_git.ask.text.questions import Steer, Steering, steering
from smp_git.ask.text.ranking import Reason, TextHit
from smp_git.ask.text.snippets import snippet
from smp_git.ask.text.words import stem, words

__all__ = [
    "Document",
    "Encoder",
    "EncoderUnfitError",
    "Followed",
    "Meanings",
    "Reason",
    "SearchCache",
    "Steer",
    "Steering",
    "TextHit",
    "find_encoder",
    "keep_vectors",
    "meaning_text",
    "search",
    "snippet",
    "steering",
    "stem",
    "words",
]
