"""The pacer on problems that nothing was tuned on: what docs/policies.md says of it, on smaller families."""

import numpy as np
import pytest

import paceline as pl

pytestmark = pytest.mark.statistical

# kind: (most of the limit that the pacer may lose, fewest times that SUAK must lose as much), geometric means
WANTED = {"beta": (0.8, 40.0), "bernoulli": (0.45, 30.0), "mixed": (0.45, 40.0)}


@pytest.mark.parametrize("kind", WANTED)
def test_the_pacer_on_a_fresh_family(kind):
    study = pl.compare(kind, ["thompson", "suak"], problems=96, rounds=200_000, trials=1, seed=5150)
    of_limit, times_less = WANTED[kind]
    pacer, suak = study.together.regret.mean(axis=-1)
    assert np.exp(np.log(pacer / study.together.limits).mean()) <= of_limit
    assert np.exp(np.log(suak / pacer).mean()) >= times_less
    assert all(score.min_headroom >= 0 for score in study.scores())
    # Where SUAK loses less it never got past the arms at the head of the list, and they happen to be the right ones.
    for res, ours, theirs in zip(study.values(), pacer, suak, strict=True):
        if theirs < ours:
            assert (res["suak"].pulls == 0).any(axis=1).all()


@pytest.mark.parametrize("rounds", [2_000, 20_000])
@pytest.mark.parametrize("kind", ["beta", "bernoulli", "mixed", "small-budget", "at-budget", "correlated"])
def test_the_pacer_is_ahead_at_short_horizons(kind, rounds):
    others = ["optimistic", "suak", "one-phase", "primal-dual", "ucb-simplex", "uniform"]
    study = pl.compare(kind, ["thompson", *others], problems=12, rounds=rounds, trials=6, seed=27_182)
    scores = {score.label: score.ratio.value for score in study.scores()}
    assert min(scores, key=lambda label: scores[label]) == "thompson", scores
