"""Every example in a docstring runs, against the installed package."""

import doctest
import importlib
import pkgutil

import pytest

import paceline

MODULES = sorted(module.name for module in pkgutil.walk_packages(paceline.__path__, "paceline."))


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_examples_in_docstrings(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0
