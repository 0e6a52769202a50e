"""The sentence model all-MiniLM-L6-v2: the only owner of onnxruntime, tokenizers and numpy."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

# An extra: what is checked here must not depend on whether it is installed.
np: Any = import_module("numpy")
onnxruntime: Any = import_module("onnxruntime")
tokenizers: Any = import_module("tokenizers")
Floats = Any

# The model knows positions up to 512, but it was trained on 128; the rest is cut.
_MOST_PIECES: Final = 128
_KEPT: Final = "<f2"


def matrix(vectors: Iterable[bytes]) -> Floats:
    """Return vectors of many texts, one row each."""
    return np.array([np.frombuffer(each, dtype=_KEPT) for each in vectors], dtype=np.float32)


class MiniLM:
    """The model, loaded; equal texts get equal vectors of length 1."""

    def __init__(self, weights: bytes, tokenizer: bytes) -> None:
        options = onnxruntime.SessionOptions()
        # Several threads would share out one short text, and wait for each other in a loop.
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            weights, options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = tokenizers.Tokenizer.from_buffer(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MOST_PIECES)
        # One question is put to many sessions.
        self._asked = lru_cache(maxsize=16)(self._pooled)

    def vector(self, text: str) -> bytes:
        """Return the vector of a text.

        One text at a time: beside others its last digits would depend on theirs.
        """
        return bytes(self._pooled(text).astype(_KEPT).tobytes())

    def likeness(self, text: str, vectors: Floats) -> list[float]:
        """Return the cosine of a text to each of `vectors`."""
        cosines: list[float] = (vectors @ self._asked(text)).tolist()
        return cosines

    def _pooled(self, text: str) -> Floats:
        # Half of a surrogate pair is text in JSON, but not in UTF-8.
        whole = text.encode("utf-8", "replace").decode()
        pieces = np.array([self._tokenizer.encode(whole).ids], dtype=np.int64)
        inputs = {
            "input_ids": pieces,
            "attention_mask": np.ones_like(pieces),
            "token_type_ids": np.zeros_like(pieces),
        }
        (states,) = self._session.run(None, inputs)
        pooled = states[0].sum(axis=0)
        return pooled / np.linalg.norm(pooled)
