"""Write the samples of `tests/data/redaction` that come from its frames.

    python -m tests.redact.samples

Each frame goes by the hash of its text into the part that the patterns are written with
or into the part that is held out, so that no shape of the second was seen by who wrote
them. A token stands twice in each part, in contexts of that part.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from random import Random

DATA = Path(__file__).parent.parent / "data" / "redaction"
WRITING, HELD_OUT = "writing", "held_out"
PARTS = (WRITING, HELD_OUT)
TOKENS = 2
TIMES = 3
_ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "a": string.ascii_lowercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "h": "0123456789abcdef",
    "d": string.digits,
    "l": string.ascii_letters,
    "w": string.ascii_letters + string.digits + "-_",
    "b": string.ascii_letters + string.digits + "+/",
}
_RUN = re.compile(r"\{([AaUhdlwb]):(\d+)\}")
_WORDS = [
    "summer",
    "tiger",
    "coffee",
    "dragon",
    "monkey",
    "winter",
    "garden",
    "purple",
    "rocket",
    "castle",
    "orange",
    "silver",
]


def part_of(frame: str) -> str:
    """Return the part that a frame belongs to."""
    return PARTS[sha256(frame.encode()).digest()[0] % 2]


def frames(name: str) -> list[str]:
    """Return the frames of one file, with their alternatives written out."""
    text = (DATA / "frames" / f"{name}.txt").read_text(encoding="utf-8")
    lines = [line for line in text.split("\n") if line and not line.startswith(";;")]
    return [one for line in lines for one in _spread(line)]


def _spread(line: str) -> list[str]:
    before, found, rest = line.partition("‹")
    choices, _, after = rest.partition("›")
    return [before + choice + after for choice in choices.split("|")] if found else [line]


def filled(shape: str, random: Random) -> str:
    """Return a text of a shape such as `ghp_{A:36}`."""
    return _RUN.sub(lambda run: "".join(random.choices(_ALPHABETS[run[1]], k=int(run[2]))), shape)


def password(random: Random) -> str:
    """Return a password as people and their managers make them."""
    word, other = random.sample(_WORDS, 2)
    sign = random.choice("!#$%&*?+")
    number = str(random.randrange(10, 10_000))
    return random.choice(
        [
            word.title() + number + sign,
            word + number,
            word.replace("e", "3").replace("o", "0").replace("i", "1") + number,
            word.title() + sign + number,
            f"{word}-{other}-{number}",
            word.title() + other.title() + number,
            sign + word.upper() + number[:2] + other,
            filled("{A:12}", random) + str(random.randrange(10)),
            filled("{w:15}", random) + "x" + str(random.randrange(10)),
            f"{random.choice(_WORDS)}_{number}{sign}{other[:3]}",
        ]
    )


def secrets(part: str) -> Iterator[dict[str, object]]:
    """Yield the secrets of one part, each between what stands before and after it."""
    random = Random(f"secrets {part}")
    contexts = [frame for frame in frames("contexts") if part_of(frame) == part]
    for line in frames("providers"):
        name, _, shape = line.partition("\t")
        for context in random.sample(contexts, TOKENS):
            yield _sample(name, context, filled(shape, random), random)
    for kind in ("shell", "prose"):
        for frame in frames(kind):
            if part_of(frame) == part:
                yield _sample(kind, frame, password(random), random)


def lookalikes(part: str) -> Iterator[dict[str, object]]:
    """Yield the texts of one part that hold no secret."""
    random = Random(f"lookalikes {part}")
    for frame in frames("lookalikes"):
        if part_of(frame) == part:
            for _ in range(TIMES if _RUN.search(frame) else 1):
                yield {"about": "frames", "text": filled(frame.replace("\\n", "\n"), random)}


def _sample(kind: str, frame: str, secret: str, random: Random) -> dict[str, object]:
    before, _, after = frame.replace("\\n", "\n").partition("□")
    return {"kind": kind, "before": before, "secret": _pieces(secret, random), "after": after}


def _pieces(secret: str, random: Random) -> list[str]:
    """Cut a secret, so that no file holds a whole token."""
    pieces: list[str] = []
    rest = secret
    while rest:
        size = random.randint(2, 3) if len(pieces) < 3 else random.randint(5, 9)
        pieces.append(rest[:size])
        rest = rest[size:]
    return pieces


def _write(name: str, samples: Iterable[dict[str, object]]) -> None:
    lines = [json.dumps(sample, ensure_ascii=False) for sample in samples]
    (DATA / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for each in PARTS:
        _write(f"{each}_secrets.jsonl", secrets(each))
        _write(f"{each}_lookalikes.jsonl", lookalikes(each))
