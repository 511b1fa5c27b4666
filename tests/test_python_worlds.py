"""Worlds in plain Python: the totals of compiled ones, a line for every wrong outcome, an object for every trial."""

import itertools
import math
import random
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from comparing import all_bits
from lanes import FIRST
from play import EVERY_KIND, SEVERAL, THREE_ARMS
from worlds import Mirror

import paceline as pl
from paceline.policies import POLICIES
from paceline.problems.distributions import Bernoulli, Beta, Constant, Scaled, Shifted

REFILLED = pl.Problem(
    [Bernoulli(0.6), Beta(0.8), Constant(0.1)],
    [Beta(0.5), Scaled(Beta(0.7), 0.9), Shifted(Scaled(Beta(0.5), 0.4), -0.7)],
    budget=0.2,
    start=3.0,
    cap=4.0,
)
TWO_RESOURCES = pl.Problem.beta(
    [0.45, 0.7, 0.8, 0.6],
    {"money": [0.3, 0.75, 0.8, 0.5], "energy": [0.2, 0.1, 0.6, 0.7]},
    budget={"money": 0.5, "energy": 0.25},
    max_costs={"money": [0.5, 1.0, 1.0, 0.9]},
)
TWO_REFILLED = pl.Problem(
    [Bernoulli(0.6), Beta(0.8), Constant(0.1)],
    {"money": [Beta(0.3), Beta(0.8), Beta(0.6)], "energy": [Beta(0.5), Beta(0.3), Scaled(Beta(0.5), -0.8)]},
    budget={"money": 0.45, "energy": 0.2},
    start={"energy": 1.5},
    cap={"energy": 4.0},
)
STOCK = pl.Problem.beta(
    [0.5, 0.9],
    {"money": [0.3, 0.6], "stock": [0.2, 0.8]},
    budget={"money": 0.4, "stock": 0.0},
    start={"money": 2.0, "stock": 90.0},
)
PROBLEMS = {
    "three arms": THREE_ARMS,
    "every kind": EVERY_KIND,
    "refills, cap and start": REFILLED,
    "two resources": TWO_RESOURCES,
    "two resources, refills, cap and start": TWO_REFILLED,
    "two resources, a stock that has to last": STOCK,
}
FAST = ("refills, cap and start", "two resources, refills, cap and start")


def in_its_lane(words: str, *values: object, name: str = "") -> object:
    """A case of the problem that these words are for."""
    is_fast = words in FAST and name in ("", *FIRST)
    return pytest.param(*values, id=f"{name}, {words}" if name else words, marks=() if is_fast else pytest.mark.slow)


every_problem = pytest.mark.parametrize("problem", [in_its_lane(words, problem) for words, problem in PROBLEMS.items()])
SETTINGS = {"rounds": 200, "trials": 2, "seed": 5, "checkpoints": 30}


def players(problem: pl.Problem) -> list[str]:
    """The policies that can play a problem."""
    return [
        name
        for name, policy in POLICIES.items()
        if len(problem.resources) <= (policy.resources or math.inf) and (policy.refillable or not any(problem.refills))
    ]


class Veiled(pl.PythonWorld):
    """The same, of which nobody is told the means."""

    def __init__(self, problem, max_costs=None):
        self.hidden = problem
        self.arms, self.budget, self.max_costs, self.start = problem.arms, problem.budget, max_costs, problem.start
        finite = {name: cap for name, cap in zip(problem.resources, problem.caps, strict=True) if cap < math.inf}
        self.cap = finite.get("cost", finite or None)

    def reset(self, seed, stream):
        self.draws = self.hidden.sample(seed, stream)

    def outcome(self, t, arm, count):
        return self.draws.pull(arm)


class VeiledRefills(Veiled):
    refills = True


def veiled(problem: pl.Problem, max_costs: object = None) -> pl.PythonWorld:
    return (VeiledRefills if any(problem.refills) else Veiled)(problem, max_costs)


# The same totals.


@pytest.mark.parametrize(
    ("name", "problem"),
    [in_its_lane(words, name, problem, name=name) for words, problem in PROBLEMS.items() for name in players(problem)],
)
def test_world_in_python_gives_the_totals_of_the_compiled_one(name, problem):
    compiled = pl.simulate(problem, name, **SETTINGS)
    assert compiled[name].pulls.sum() > 70
    assert all_bits(pl.simulate(Mirror(problem), name, **SETTINGS)) == all_bits(compiled)


@every_problem
def test_world_without_the_truth_gives_the_same_totals(problem):
    # Others look at which resources can be refilled: in a world of its own it is all of them or none.
    names = ["uniform"] if any(problem.refills) else ["thompson", "one-phase", "uniform"]
    largest = None if min(map(min, problem.most)) == 1.0 else problem.max_costs
    assert all_bits(pl.simulate(veiled(problem, largest), names, **SETTINGS)) == all_bits(
        pl.simulate(problem, names, **SETTINGS)
    )


class Turns(pl.PythonPolicy):
    """The arms in turn, in plain Python as well."""

    def reset(self, setting):
        self.arms, self.turn = setting.arms, -1

    def choose(self, state):
        self.turn += 1
        return self.turn % self.arms


@every_problem
def test_policy_and_world_may_both_be_in_python(problem):
    assert all_bits(pl.simulate(Mirror(problem), Turns(), **SETTINGS)) == all_bits(
        pl.simulate(problem, Turns(), **SETTINGS)
    )


# What a world must not yield.

BAD_ROUND, BAD_ARM = 8, 1


class Faulty(pl.PythonWorld):
    """Good until a pull of arm 1 in round 8."""

    arms = 2

    def __init__(self, answer, budget, good):
        self.answer, self.budget, self.good = answer, budget, good

    def outcome(self, t, arm, count):
        return self.answer if (t, arm) == (BAD_ROUND, BAD_ARM) else self.good


def of_two(answer, good=(0.5, (0.25, 0.5))):
    return Faulty(answer, {"money": 1.0, "energy": 1.0}, good)


def of_one(answer, good=(0.5, 0.25)):
    return Faulty(answer, 1.0, good)


WRONG = {
    "cost above 1": (of_two, (0.5, {"money": 0.25, "energy": 1.25}), ["'energy'", "[0, 1]", "1.25"]),
    "cost below 0": (of_two, (0.5, {"money": -0.25, "energy": 0.5}), ["'money'", "[0, 1]", "-0.25"]),
    "cost that is infinite": (of_two, (0.5, (math.inf, 0.5)), ["'money'", "inf"]),
    "cost that is not a number": (of_two, (0.5, (0.25, math.nan)), ["'energy'", "nan"]),
    "cost that is a text": (of_two, (0.5, (0.25, "dear")), ["'energy'", "'dear'"]),
    "cost that is None": (of_two, (0.5, {"money": None, "energy": 0.5}), ["'money'", "None"]),
    "cost that is an array": (of_two, (0.5, (0.25, np.array([0.5, 0.5]))), ["'energy'", "array"]),
    "cost that is true": (of_one, (0.5, True), ["'cost'", "True"]),
    "costs in a set": (of_two, (0.5, {0.25, 0.5}), ["money", "energy"]),
    "cost of one resource": (of_one, (0.5, 1.25), ["'cost'", "[0, 1]", "1.25"]),
    "reward above 1": (of_two, (1.25, (0.25, 0.5)), ["reward", "[0, 1]", "1.25"]),
    "reward below 0": (of_two, (-0.25, (0.25, 0.5)), ["reward", "-0.25"]),
    "reward that is not a number": (of_two, (math.nan, (0.25, 0.5)), ["reward", "nan"]),
    "reward that is a text": (of_two, ("much", (0.25, 0.5)), ["reward", "'much'"]),
    "reward that is None": (of_two, (None, (0.25, 0.5)), ["reward", "None"]),
    "reward that is an array": (of_two, (np.array([0.5, 0.5]), (0.25, 0.5)), ["reward", "array"]),
    "one cost too few": (of_two, (0.5, (0.25,)), ["money", "energy", "(0.25,)"]),
    "one cost too many": (of_two, (0.5, (0.25, 0.5, 0.5)), ["money", "energy", "(0.25, 0.5, 0.5)"]),
    "one number for two costs": (of_two, (0.5, 0.25), ["money", "energy", "0.25"]),
    "resource that is missing": (of_two, (0.5, {"money": 0.25}), ["'energy'"]),
    "resource that there is not": (of_two, (0.5, {"money": 0.25, "energy": 0.5, "time": 0.5}), ["'time'"]),
    "two costs for one": (of_one, (0.5, [0.25, 0.25]), ["cost", "[0.25, 0.25]"]),
    "no cost": (of_one, (0.5, []), ["cost", "[]"]),
    "reward alone": (of_one, 0.5, ["(reward, cost)", "0.5"]),
    "three of them": (of_one, (0.5, 0.25, 0.25), ["(reward, cost)"]),
    "nothing": (of_one, None, ["(reward, cost)", "None"]),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_outcome_is_one_line_with_its_place(what):
    make, answer, words = WRONG[what]
    with pytest.raises(pl.InvalidWorld) as refused:
        pl.simulate(make(answer), Turns(), rounds=20, trials=1)
    (line,) = str(refused.value).splitlines()
    for word in ("Faulty", f"arm {BAD_ARM}", f"round {BAD_ROUND}", *words):
        assert word in line


class Bounded(pl.PythonWorld):
    """An arm that costs little, and in the end a little more."""

    arms, budget, max_costs = 2, 0.5, (0.25, 1.0)

    def outcome(self, t, arm, count):
        return 0.5, 0.3125 if count == 20 else 0.25


def test_arm_may_have_a_largest_cost_of_its_own():
    run = pl.simulate(Bounded(), "uniform", rounds=10, trials=1)["uniform"]
    assert run.pulls[0, 0] > 0
    line = r"^Bounded: cost of arm 0 in 'cost' in round \d+ must be in \[0, 0\.25\], got 0\.3125$"
    with pytest.raises(pl.InvalidWorld, match=line):
        pl.simulate(Bounded(), "uniform", rounds=200, trials=1)


@pytest.mark.parametrize(
    "form", [(0.25, 0.5), [0.25, 0.5], np.array([0.25, 0.5]), {"energy": 0.5, "money": 0.25}], ids=repr
)
def test_costs_come_in_many_forms(form):
    run = pl.simulate(of_two(None, (1, form)), Turns(), rounds=7, trials=1)["Turns"]  # the odd one is in round 8
    assert run.spent[0, -1].tolist() == [7 * 0.25, 7 * 0.5]


@pytest.mark.parametrize(
    "form", [0.25, (0.25,), np.array([0.25]), np.float32(0.25), np.array(0.25), {"cost": 0.25}], ids=repr
)
def test_one_cost_comes_in_many_forms(form):
    run = pl.simulate(of_one(None, (np.float64(0.5), form)), Turns(), rounds=7, trials=1)["Turns"]
    assert (run.spent[0, -1], run.totals.earned[0, -1]) == (7 * 0.25, 7 * 0.5)


class Armless(pl.PythonWorld):
    budget = 0.5

    def outcome(self, t, arm, count):
        return 0.5, 0.25


class Halves(Armless):
    arms = 2.5


class Rich(Armless):
    arms, budget = 2, 1.5


class Silent(pl.PythonWorld):
    arms, budget = 2, 0.5


@pytest.mark.parametrize(
    ("world", "words"),
    [
        (Armless(), "Armless must have arms and budget"),
        (Silent(), "Silent must have .*outcome"),
        (Halves(), "arms of Halves must be a whole number"),
        (Rich(), r"budget must be in \(0, 1\], got 1.5"),
        (Rich, "problem must be a Problem or a PythonWorld, got <class"),
    ],
    ids=["no arms", "no outcomes", "arms and a half", "budget above 1", "a class"],
)
def test_world_that_cannot_be_played_is_one_line(world, words):
    with pytest.raises(pl.PacelineError) as refused:
        pl.simulate(world, "uniform", rounds=20, trials=1)
    (line,) = str(refused.value).splitlines()
    assert re.search(words, line)


def test_oracle_without_a_truth_is_one_line():
    with pytest.raises(pl.PacelineError, match=r"^oracle .*$"):
        pl.simulate(Veiled(THREE_ARMS), "oracle", rounds=20, trials=1)


# Regret.


@every_problem
def test_regret_is_measured_against_the_problem_of_a_world(problem):
    run, compiled = (pl.simulate(each, "uniform", **SETTINGS)["uniform"] for each in (Mirror(problem), problem))
    for kind in ("regret", "pseudo_regret", "steady_regret"):
        assert np.isfinite(getattr(run, kind)).all()
        assert getattr(run, kind).tobytes() == getattr(compiled, kind).tobytes()


@every_problem
def test_world_without_a_problem_has_no_regret_but_a_table(problem, tmp_path):
    results = pl.simulate(veiled(problem), ["thompson", "uniform"], **SETTINGS)
    for run in results.values():
        for values in (run.regret, run.pseudo_regret, run.steady_regret, *run.breakdown().values()):
            assert values.shape == (2, 30)
            assert np.isnan(values).all()
        assert (run.totals.earned[:, -1] > 0).all()
        assert (run.min_headroom >= 0).all()
    assert [row[0] for row in results.table().rows] == ["thompson", "uniform"]
    results.save(tmp_path / "results.npz")
    assert str(pl.Results.load(tmp_path / "results.npz").table()) == str(results.table())


# One object for each trial.


class Watched(pl.PythonWorld):
    """Remembers every copy of itself, and has the trials in other threads go round by round together."""

    arms, budget = 2, 0.5

    def __init__(self, together=None):
        type(self).copies, type(self).together = [], together
        self.resets, self.pulls, self.threads = [], [], set()

    def reset(self, seed, stream):
        self.resets.append((seed, stream))
        self.copies.append(self)
        self.level = (seed + stream) % 7 / 8

    def outcome(self, t, arm, count):
        self.pulls.append((t, arm, count))
        self.threads.add(threading.current_thread())
        if self.together is not None and threading.current_thread() is not threading.main_thread():
            self.together.wait(timeout=30)
        return self.level, 0.4


def test_each_trial_is_reset_once_with_its_seed_and_stream():
    world = Watched()
    results = pl.simulate(world, ["uniform", "thompson"], rounds=50, trials=3, seed=11)
    assert world.resets == world.pulls == []
    assert all(len(copy.resets) == 1 for copy in Watched.copies)
    assert {copy.resets[0] for copy in Watched.copies} == {(11, 0), (11, 1), (11, 2)}
    played = [copy for copy in Watched.copies if copy.pulls[-1:] and copy.pulls[-1][0] > 1]
    assert sorted(copy.resets[0] for copy in played) == [(11, stream) for stream in (0, 0, 1, 1, 2, 2)]
    for run in results.values():
        levels = run.totals.earned[:, -1] / run.pulls.sum(axis=1)
        assert levels.tolist() == [(11 + stream) % 7 / 8 for stream in range(3)]


def test_rounds_count_from_1_and_pulls_of_an_arm_from_0():
    pl.simulate(Watched(), "uniform", rounds=50, trials=2)
    for copy in Watched.copies:
        rounds = [t for t, _, _ in copy.pulls]
        assert rounds == sorted(set(rounds))
        for arm in range(2):
            assert [count for _, pulled, count in copy.pulls if pulled == arm] == list(
                range(sum(pulled == arm for _, pulled, _ in copy.pulls))
            )
    assert max(t for copy in Watched.copies for t, _, _ in copy.pulls) == 50
    assert min(t for copy in Watched.copies for t, _, _ in copy.pulls) == 2  # the budget covers none before


def test_trials_on_threads_do_not_share_the_object():
    count = 4
    settings = {"rounds": 60, "trials": count, "seed": 3}
    world = Watched(threading.Barrier(count))
    with ThreadPoolExecutor(count) as pool:
        at_once = pl.simulate(world, "uniform", executor=pool, **settings)
    copies = [copy for copy in Watched.copies if threading.main_thread() not in copy.threads and copy.pulls]
    assert len(copies) == len({thread for copy in copies for thread in copy.threads}) == count
    assert sorted(copy.resets[0] for copy in copies) == [(3, stream) for stream in range(count)]
    for copy in copies:
        assert len(copy.threads) == 1
        assert [t for t, _, _ in copy.pulls] == sorted({t for t, _, _ in copy.pulls})
    with ThreadPoolExecutor(1) as pool:
        assert all_bits(pl.simulate(Watched(), "uniform", executor=pool, **settings)) == all_bits(at_once)


# check_world.


class Seasons(pl.PythonWorld):
    """Two arms that are good in turn."""

    arms, budget = 2, 0.5

    def reset(self, seed, stream):
        self.random = np.random.default_rng([seed, stream])

    def outcome(self, t, arm, count):
        good = (t // 50) % 2 == arm
        return float(self.random.random() < (0.8 if good else 0.2)), 0.4


class Worn(pl.PythonWorld):
    """Arms that wear out pull by pull; it counts the pulls itself and trusts the number that it is given."""

    arms, budget = 3, 0.5

    def reset(self, seed, stream):
        self.pulls = [0] * self.arms

    def outcome(self, t, arm, count):
        assert (t >= 1, count) == (True, self.pulls[arm])
        self.pulls[arm] += 1
        return 1 / (1 + count), 0.25


class Lone(Worn):
    arms = 1


GOOD = {"seasons": Seasons(), "worn": Worn(), "one arm": Lone(), "several resources": Mirror(SEVERAL)} | {
    words: world(problem)
    for word, world in (("mirror", Mirror), ("veiled", veiled))
    for words, problem in ((f"{word}, {words}", problem) for words, problem in PROBLEMS.items())
}


@pytest.mark.parametrize("name", GOOD)
def test_good_world_passes(name):
    pl.testing.check_world(GOOD[name])


class Unseeded(Seasons):
    def reset(self, seed, stream):
        self.random = np.random.default_rng()


class Shared(Seasons):
    def outcome(self, t, arm, count):
        return random.random(), 0.4


class Clockwork(Seasons):
    ticks = itertools.count()

    def outcome(self, t, arm, count):
        return next(self.ticks) % 7 / 7, 0.4


class SharedList(Seasons):
    seen: list[int] = []  # noqa: RUF012  # the mistake

    def outcome(self, t, arm, count):
        self.seen.append(arm)
        return len(self.seen) % 7 / 7, 0.4


class Unforgetting(Seasons):
    """Copies of it are all the same, but each of them goes on where it was."""

    def __init__(self):
        self.count = 0

    def outcome(self, t, arm, count):
        self.count += 1
        return self.count % 7 / 7, 0.4


class Late(Seasons):
    """Wrong in its 31st pull of one arm only."""

    def outcome(self, t, arm, count):
        return 0.5, 1.25 if (arm, count) == (1, 30) else 0.4


class AtFirst(Seasons):
    def outcome(self, t, arm, count):
        return 1.5 if (arm, count) == (0, 0) else 0.5, 0.4


BROKEN = {
    Unseeded: "Unseeded must give the same outcomes for the same seed and stream",
    Shared: "Shared must give the same outcomes for the same seed and stream",
    Clockwork: "Clockwork must give the same outcomes for the same seed and stream",
    SharedList: "SharedList must give the same outcomes for the same seed and stream",
    Unforgetting: "Unforgetting must .*same",
    Late: r"Late: cost of arm 1 in 'cost' in round \d+ must be in \[0, 1\], got 1.25",
    AtFirst: r"AtFirst: reward of arm 0 in round \d+ must be in \[0, 1\], got 1.5",
    Armless: "Armless must have arms and budget",
    Silent: "Silent must have .*outcome",
    Rich: "Rich: budget must be in",
}


@pytest.mark.parametrize("world", BROKEN, ids=lambda world: world.__name__)
def test_broken_world_is_caught_in_one_line(world):
    with pytest.raises(pl.InvalidWorld) as refused:
        pl.testing.check_world(world())
    (line,) = str(refused.value).splitlines()
    assert re.match(BROKEN[world], line) or re.match(f"{world.__name__}: {BROKEN[world]}", line)


@pytest.mark.parametrize("what", WRONG)
def test_every_wrong_outcome_is_caught(what):
    make, answer, words = WRONG[what]
    with pytest.raises(pl.InvalidWorld) as refused:
        pl.testing.check_world(make(answer, good=answer))
    (line,) = str(refused.value).splitlines()
    for word in ("Faulty", *words):
        assert word in line


@pytest.mark.parametrize("thing", [Seasons, THREE_ARMS, "seasons", None], ids=repr)
def test_what_is_no_world_is_refused(thing):
    with pytest.raises(pl.InvalidWorld, match=r"^a world must be an object of a class derived from PythonWorld, got "):
        pl.testing.check_world(thing)
