"""Problems as tables: what a bare mean stands for when the largest costs of the arms are known."""

import pytest

import paceline as pl
from paceline.problems.toml import read_toml

TOML = """
kind = "{kind}"
rewards = [0.4, 0.7, 0.9]
costs = {{money = [0.1, 0.3, 0.0], energy = [0.2, {{kind = "constant", value = 0.25}}, 0.6]}}
budget = {{money = 0.2, energy = 0.5}}
max_costs = {{money = [0.2, 1.0, 0.0], energy = [0.5, 0.25, 1.0]}}
"""


@pytest.mark.parametrize(("kind", "bare"), [("beta", pl.Beta), ("bernoulli", pl.Bernoulli)])
def test_bare_means_stay_within_the_largest_costs(kind, bare, tmp_path):
    file = tmp_path / "problem.toml"
    file.write_text(TOML.format(kind=kind), encoding="utf-8")
    problem = pl.Problem.from_dict(read_toml(file))
    assert problem.costs["money"] == (pl.Scaled(bare(0.5), 0.2), bare(0.3), pl.Constant(0.0))
    assert problem.costs["energy"] == (pl.Scaled(bare(0.4), 0.5), pl.Constant(0.25), bare(0.6))
    assert problem.max_costs == {"money": (0.2, 1.0, 0.0), "energy": (0.5, 0.25, 1.0)}
    assert pl.Problem.from_dict(problem.to_dict()) == problem


@pytest.mark.parametrize("kind", ["beta", "bernoulli"])
def test_table_and_constructor_agree(kind):
    means = {"rewards": [0.3, 0.8], "costs": [0.1, 0.6], "budget": 0.3, "max_costs": [0.2, 1.0], "start": 2.0}
    assert pl.Problem.from_dict({"kind": kind, **means}) == getattr(pl.Problem, kind)(**means)


@pytest.mark.parametrize(
    ("max_costs", "line"),
    [
        ([0.05, 1.0], "costs[0] must be at most the largest cost of its arm, 0.05, got 0.1"),
        ([0.2], "max_costs must have one entry per arm, got 1 for 2 arms"),
        ([0.2, 1.5], "max_costs[1] must be in [0, 1], got 1.5"),
        (
            {"money": [0.2, 1.0]},
            "max_costs must be given without a name, as the one resource has none, got 'money'",
        ),
    ],
)
def test_largest_costs_that_do_not_fit_are_one_line(max_costs, line):
    table = {"rewards": [0.3, 0.8], "costs": [0.1, 0.6], "budget": 0.3, "max_costs": max_costs}
    with pytest.raises(pl.PacelineError) as refused:
        pl.Problem.from_dict(table)
    assert str(refused.value) == line
