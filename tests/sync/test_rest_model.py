"""A model of replicas that sync in turn: which rule brings all of them to one head.

Commits are names; a merge is a name made of its parents. That alone is not enough: with
histories that have parted before, syncs in a fixed order chase each other for ever. With
the second rule, that of the two heads that differ in nothing but merges the one gives way
which lacks the greatest merge, they come to rest.
"""

from __future__ import annotations

import hashlib
import random

import pytest

ROUNDS = 10


class Model:
    """Replicas, remotes, and the commits below each head."""

    def __init__(self, seed: int, *, gives_way: bool) -> None:
        self.chance = random.Random(seed)
        self.replicas = ["root"] * self.chance.randint(2, 5)
        self.remotes = ["root"] * self.chance.randint(1, 4)
        self.below: dict[str, frozenset[str]] = {"root": frozenset(("root",))}
        self.gives_way = gives_way
        self.count = 0

    def write(self, replica: int) -> None:
        self.count += 1
        name = f"write {self.count}"
        self.below[name] = self.below[self.replicas[replica]] | {name}
        self.replicas[replica] = name

    def sync(self, replica: int, remote: int) -> None:
        made = self.merged(self.replicas[replica], self.remotes[remote])
        assert self.remotes[remote] in self.below[made], "every push is a fast-forward"
        self.replicas[replica] = self.remotes[remote] = made

    def merged(self, ours: str, theirs: str) -> str:
        mine = self.below[ours] - self.below[theirs]
        others = self.below[theirs] - self.below[ours]
        if not mine or not others:
            return theirs if not mine else ours
        only_merges = not any(name.startswith("write") for name in mine | others)
        if self.gives_way and only_merges and max(others) > max(mine):
            return theirs
        made = hashlib.sha1("+".join(sorted((ours, theirs))).encode()).hexdigest()
        self.below[made] = self.below[ours] | self.below[theirs] | {made}
        return made

    def heads(self) -> set[str]:
        return {*self.replicas, *self.remotes}


def _rests(seed: int, order: str, *, gives_way: bool) -> bool:
    model = Model(seed, gives_way=gives_way)
    pairs = [(a, b) for a in range(len(model.replicas)) for b in range(len(model.remotes))]
    for _ in range(model.chance.choice((0, 5, 20, 40))):
        if model.chance.random() < 0.5:
            model.write(model.chance.randrange(len(model.replicas)))
        else:
            model.sync(*model.chance.choice(pairs))
    if order != "by replica":
        model.chance.shuffle(pairs)
    for _ in range(ROUNDS):
        if order == "any":
            model.chance.shuffle(pairs)
        for pair in pairs:
            model.sync(*pair)
    return len(model.heads()) == 1


@pytest.mark.parametrize("order", ["by replica", "any fixed", "any"])
def test_syncs_in_every_order_end_at_one_head(order: str) -> None:
    assert all(_rests(seed, order, gives_way=True) for seed in range(120))


def test_without_giving_way_syncs_in_fixed_order_never_end() -> None:
    assert not all(_rests(seed, "by replica", gives_way=False) for seed in range(120))
