"""The names that the package promises."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import smp_git
from tests.support import ROOT


def test_names_are_sorted_and_all_there() -> None:
    assert list(smp_git.__all__) == sorted(smp_git.__all__)
    assert set(smp_git.__all__) == set(smp_git._HOMES)
    assert all(hasattr(smp_git, name) for name in smp_git.__all__)


@pytest.mark.parametrize("name", smp_git.__all__)
def test_name_comes_from_the_module_that_defines_it(name: str) -> None:
    found = getattr(smp_git, name)

    assert found.__module__ == f"smp_git.{smp_git._HOMES[name]}"


@pytest.mark.parametrize("name", smp_git.__all__)
def test_name_and_its_methods_are_documented(name: str) -> None:
    found = getattr(smp_git, name)
    bare = [
        attribute
        for attribute, value in vars(found).items()
        if not attribute.startswith("_")
        and (inspect.isfunction(value) or isinstance(value, (property, classmethod)))
        and not inspect.getdoc(getattr(found, attribute))
    ]

    assert (found.__doc__ or "").strip()
    assert bare == []


@pytest.mark.parametrize("name", smp_git.__all__)
def test_name_stands_in_the_reference(name: str) -> None:
    pages = [page.read_text() for page in (ROOT / "docs/reference").glob("*.md")]

    assert any(name in page for page in pages)


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Vault'"):
        _ = smp_git.Vault


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, smp_git; print(sorted({'pygit2', 'ruamel.yaml', 'filelock', 'typer'} & set(sys.modules)))"  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )

    assert done.stdout == "[]\n"
