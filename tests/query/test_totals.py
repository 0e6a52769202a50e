"""A total that is not all says so."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from smp_git import Session, Store
from smp_git.cli.program import program


@pytest.mark.parametrize(("count", "is_least"), [(150, False), (230, True)])
def test_a_total_beyond_what_was_looked_at_is_the_least(shop: Session, fast_store: Store, count: int, is_least: bool) -> None:  # fmt: skip
    with shop.transaction() as tx:
        for number in range(count):
            tx.add("decision", f"a cache for page {number}")

    for answer in (shop.query("cache"), fast_store.query("cache")):
        assert (answer.total, answer.is_least) == (min(count, 200), is_least)
        assert answer.as_json()["total_is_least"] is is_least
    assert shop.query("cache", limit=None).total == count
    assert not shop.query("cache", limit=None).is_least
    assert not shop.query(kinds=["decision"]).is_least
    given = ["--root", str(fast_store.path), "-s", "shop", "query", "cache", "-n", "1"]
    most = "1 of 200+" if is_least else "1 of 150"
    assert CliRunner().invoke(program(), given).stderr == f"note: {most}; --limit N shows more\n"
