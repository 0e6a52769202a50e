"""Full-text search and similarity over the memories of a session."""

from smp_git.ask.text.cache import SearchCache
from smp_git.ask.text.cachefile import CacheNotErasedError
from smp_git.ask.text.documents import Document, TextHit
from smp_git.ask.text.meanings import Encoder, find_encoder
from smp_git.ask.text.snippets import snippet

__all__ = [
    "CacheNotErasedError",
    "Document",
    "Encoder",
    "SearchCache",
    "TextHit",
    "find_encoder",
    "snippet",
]
