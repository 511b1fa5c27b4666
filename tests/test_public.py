"""The names that users call: they are there, they are documented, and importing them costs nothing."""

import inspect
import subprocess
import sys
from dataclasses import is_dataclass
from importlib import metadata
from pathlib import Path

import pytest

import paceline

CONTRACT = (
    "Problem",
    "Bernoulli",
    "Beta",
    "Constant",
    "Empirical",
    "paper",
    "SUAK",
    "OnePhase",
    "PrimalDual",
    "UCBSimplex",
    "Uniform",
    "Oracle",
    "simulate",
    "Results",
)
HEAVY = ("numba", "numpy", "matplotlib", "pandas", "tqdm")


def test_the_contract_is_kept():
    assert set(CONTRACT) <= set(paceline.__all__)


@pytest.mark.parametrize("name", sorted({*CONTRACT, *paceline.__all__}))
def test_public_name_is_there_and_documented(name):
    value = getattr(paceline, name)
    assert value.__doc__
    if is_dataclass(value):  # one without a docstring gets its signature for one
        assert value.__doc__ != name + str(inspect.signature(value)).removesuffix(" -> None")


def test_problems_of_the_paper_are_documented():
    for problem in (paceline.paper.three_arms, paceline.paper.eight_arms):
        assert problem.__doc__


def test_star_import_gives_all_names():
    found: dict[str, object] = {}
    exec("from paceline import *", found)
    assert set(paceline.__all__) <= set(found)


def test_dir_lists_the_names():
    assert set(paceline.__all__) <= set(dir(paceline))


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = paceline.no_such_name
    assert not hasattr(paceline, "no_such_name")


def test_version_is_the_one_of_the_distribution():
    assert paceline.__version__ == metadata.version("paceline")


def test_version_to_cite_is_the_same():
    lines = (Path(__file__).parent.parent / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {paceline.__version__}" in lines


def test_import_loads_nothing_heavy_and_says_nothing():
    code = f"import sys, paceline; sys.exit(', '.join(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr.strip()) == ("", "")
