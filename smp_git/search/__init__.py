"""Full-text search and similarity over the memories of a session."""

from smp_git.search.cache import SearchCache
from smp_git.search.cachefile import CacheNotErasedError
from smp_git.search.documents import Document, Hit
from smp_git.search.encoder import Encoder, find_encoder
from smp_git.search.snippets import snippet

__all__ = [
    "CacheNotErasedError",
    "Document",
    "Encoder",
    "Hit",
    "SearchCache",
    "find_encoder",
    "snippet",
]
