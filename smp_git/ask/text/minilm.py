"""The sentence model all-MiniLM-L6-v2, run with numpy alone: the only owner of numpy."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module
from math import erf
from pathlib import Path
from typing import Any, Final

# Numpy is an extra: what is checked here must not depend on whether it is installed.
np: Any = import_module("numpy")
Floats = Any

_LAYERS: Final = 6
_HEADS: Final = 12
# The model knows positions up to 512, but it was trained on 128; the rest is cut.
_MOST_PIECES: Final = 128
_LONGEST_WORD: Final = 100
# Bytes in a vector as it is kept: 384 numbers of half precision.
VECTOR_BYTES: Final = 768
_LEAST: Final = 1e-12
# Below this x·Φ(x) is 0 to the last digit.
_FLAT: Final = -9
_VARINT: Final = 0x80
_GRAPH, _INITIALIZER = 7, 5
_DIMENSIONS, _KIND, _NAME, _RAW = 1, 2, 8, 9
_TYPES: Final = {1: "<f4", 3: "<i1"}


class Matrix:
    """Vectors of many texts, one row each."""

    def __init__(self, vectors: Iterable[bytes]) -> None:
        kept = np.frombuffer(b"".join(vectors), dtype="<f2")
        self.rows: Floats = kept.reshape(-1, VECTOR_BYTES // 2).astype(np.float32)


class MiniLM:
    """The model, loaded; equal texts get equal vectors of length 1."""

    def __init__(self, weights: bytes, vocabulary: Path) -> None:
        tensors = dict(_tensors(memoryview(weights)))
        pieces = vocabulary.read_text("utf-8").splitlines()
        self._pieces = {piece: number for number, piece in enumerate(pieces)}
        embeddings = "inner.embeddings."
        self._words = tensors[f"{embeddings}word_embeddings.weight_q"]
        self._word_scales = tensors[f"{embeddings}word_embeddings.weight_scale"]
        self._positions = _scaled(tensors, f"{embeddings}position_embeddings.weight")
        self._positions = self._positions + tensors[f"{embeddings}token_type_embeddings.weight"][0]
        self._tensors = tensors
        # The exporter numbers the matrices in the order of use: query, key, value,
        # output, and the two of the feed-forward part, layer by layer.
        matrices = [name.removesuffix("_q") for name in tensors if _is_matrix(name)]
        self._matrices = [_scaled(tensors, name) for name in matrices]
        self._piece_numbers = lru_cache(maxsize=65_536)(self._split)
        # One question is put to many sessions.
        self._asked = lru_cache(maxsize=16)(self._pooled)

    def vector(self, text: str) -> bytes:
        """Return the vector of a text.

        One text at a time: beside others its last digits would depend on theirs.
        """
        return bytes(self._pooled(text).astype("<f2").tobytes())

    def likeness(self, text: str, vectors: Matrix) -> list[float]:
        """Return the cosine of a text to each of `vectors`."""
        cosines: list[float] = (vectors.rows @ self._asked(text)).tolist()
        return cosines

    def _pooled(self, text: str) -> Floats:
        numbers = self._numbers(text)
        state = self._words[numbers] * self._word_scales[numbers]
        state = self._normal(state + self._positions[: len(numbers)], "embeddings")
        for layer in range(_LAYERS):
            state = self._layer(state, layer)
        pooled = state.sum(axis=0)
        return pooled / np.linalg.norm(pooled)

    def _layer(self, state: Floats, layer: int) -> Floats:
        query, key, value, output, widen, narrow = self._matrices[6 * layer : 6 * layer + 6]
        at = f"encoder.layer.{layer}."
        mixed = _attention(
            _heads(state @ query + self._bias(f"{at}attention.self.query")),
            _heads(state @ key + self._bias(f"{at}attention.self.key")),
            _heads(state @ value + self._bias(f"{at}attention.self.value")),
        )
        state = self._normal(
            state + mixed @ output + self._bias(f"{at}attention.output.dense"),
            f"{at}attention.output",
        )
        wide = _gelu(state @ widen + self._bias(f"{at}intermediate.dense"))
        return self._normal(
            state + wide @ narrow + self._bias(f"{at}output.dense"),
            f"{at}output",
        )

    def _bias(self, name: str) -> Floats:
        return self._tensors[f"inner.{name}.bias"]

    def _normal(self, state: Floats, name: str) -> Floats:
        centred = state - state.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + _LEAST)
        weight = self._tensors[f"inner.{name}.LayerNorm.weight"]
        scaled: Floats = centred / spread * weight + self._bias(f"{name}.LayerNorm")
        return scaled

    def _numbers(self, text: str) -> list[int]:
        numbers = [self._pieces["[CLS]"]]
        for word in _split_words(text):
            numbers += self._piece_numbers(word)
            if len(numbers) >= _MOST_PIECES:
                break
        return [*numbers[: _MOST_PIECES - 1], self._pieces["[SEP]"]]

    def _split(self, word: str) -> tuple[int, ...]:
        """Return the longest known pieces of a word, from its beginning."""
        numbers = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            end = len(word)
            while end > start and prefix + word[start:end] not in self._pieces:
                end -= 1
            if end == start:
                return (self._pieces["[UNK]"],)
            numbers.append(self._pieces[prefix + word[start:end]])
            start = end
        return tuple(numbers)


def _split_words(text: str) -> Iterator[str]:
    """Return words and marks in lower case without accents, as BERT does."""
    spaced = "".join(map(_spaced, unicodedata.normalize("NFD", text.lower())))
    for word in spaced.split():
        yield word if len(word) <= _LONGEST_WORD else "[UNK]"


@lru_cache(maxsize=4_096)
def _spaced(letter: str) -> str:
    category = unicodedata.category(letter)
    if category == "Mn":
        return ""
    is_mark = category[0] == "P" or (letter.isascii() and category[0] == "S")
    is_unspaced = "\u3400" <= letter <= "\u9fff" or "\uf900" <= letter <= "\ufaff"
    if is_mark or is_unspaced:
        return f" {letter} "
    return " " if category[0] in "CZ" else letter


def _attention(query: Floats, key: Floats, value: Floats) -> Floats:
    scores = query @ key.swapaxes(-1, -2) / np.float32(query.shape[-1] ** 0.5)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ value
    heads, width, size = mixed.shape
    return mixed.swapaxes(0, 1).reshape(width, heads * size)


def _heads(state: Floats) -> Floats:
    width, size = state.shape
    return state.reshape(width, _HEADS, size // _HEADS).swapaxes(0, 1)


@cache
def _gelu_table() -> Floats:
    """Return x·Φ(x) for every half-precision x, by its bits."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    return np.array(
        [x * (1 + erf(x / 2**0.5)) / 2 if x > _FLAT else 0.0 for x in halves.tolist()],
        dtype=np.float32,
    )


def _gelu(state: Floats) -> Floats:
    """Return x·Φ(x) to three digits, which the model's own rounding hides.

    Looking it up takes a tenth of the time of computing it.
    """
    return _gelu_table()[state.astype(np.float16).view(np.uint16)]


def _is_matrix(name: str) -> bool:
    return name.startswith("val_") and name.endswith("_q")


def _scaled(tensors: Mapping[str, Floats], name: str) -> Floats:
    return np.asarray(tensors[f"{name}_q"] * tensors[f"{name}_scale"], dtype=np.float32)


def _tensors(model: memoryview) -> Iterator[tuple[str, Floats]]:
    """Return the constants of an ONNX file by name."""
    graph = next(value for field, value in _fields(model) if field == _GRAPH)
    for field, value in _fields(_bytes(graph)):
        if field == _INITIALIZER:
            tensor = dict(_fields(_bytes(value)))
            if tensor.get(_KIND) in _TYPES and _RAW in tensor:
                yield bytes(_bytes(tensor[_NAME])).decode(), _array(_bytes(value))


def _array(tensor: memoryview) -> Floats:
    shape: list[int] = []
    kind, raw = 1, memoryview(b"")
    for field, value in _fields(tensor):
        if field == _DIMENSIONS:
            shape += [value] if isinstance(value, int) else _numbers_in(value)
        elif field == _KIND and isinstance(value, int):
            kind = value
        elif field == _RAW:
            raw = _bytes(value)
    return np.frombuffer(raw, dtype=_TYPES[kind]).reshape(shape)


def _bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise TypeError("the model file is not what it should be")
    return value


def _numbers_in(packed: memoryview) -> list[int]:
    numbers = []
    at = 0
    while at < len(packed):
        number, at = _number(packed, at)
        numbers.append(number)
    return numbers


def _number(data: memoryview, at: int) -> tuple[int, int]:
    """Return the number at a place of a protocol buffer, and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < _VARINT:
            return number, at


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Return the fields of a protocol buffer message: number, and number or bytes."""
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        if key & 7 == 0:
            value, at = _number(message, at)
            yield key >> 3, value
            continue
        size = {1: 8, 5: 4}.get(key & 7)
        if size is None:
            size, at = _number(message, at)
        yield key >> 3, message[at : at + size]
        at += size
