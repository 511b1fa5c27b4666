"""Bad input gets one line that names the thing, the rule and the value."""

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from paceline import checks
from paceline.errors import InvalidValue, PacelineError, UnknownName, UnknownParameter
from paceline.policies import POLICIES, label_policies, make_policy
from paceline.policies.one_phase import OnePhase
from paceline.policies.policy import Setting
from paceline.policies.suak import SUAK
from paceline.problems.distributions import KINDS, Bernoulli, Beta, Constant, Empirical
from paceline.problems.problem import Problem

NOT_NUMBERS = [True, np.True_, "0.5", None, [0.5], 1j, Decimal("sNaN")]
OUTSIDE = [-0.1, 1.4, math.nan, math.inf, -math.inf, np.float64("nan"), Fraction(3, 2), 10**300]


def refuses(error, *words):
    """The error, in one line that holds each of the words."""
    pattern = "".join(rf"(?=.*{re.escape(str(word))})" for word in words)
    return pytest.raises(error, match=rf"\A{pattern}[^\n]*\Z")


def one_arm(budget):
    return Problem([Beta(0.3)], [Beta(0.3)], budget)


# Numbers.


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_budget_that_is_no_number(value):
    with refuses(InvalidValue, "budget must be a number, got", repr(value)):
        one_arm(value)


@pytest.mark.parametrize("value", [0, 0.0, *OUTSIDE])
def test_budget_outside_its_range(value):
    with refuses(InvalidValue, "budget must be in (0, 1], got"):
        one_arm(value)


def test_a_number_too_large_for_a_float():
    with refuses(InvalidValue, "budget must be in (0, 1], got"):
        one_arm(10**400)


def test_the_value_is_shown():
    with refuses(InvalidValue, "budget must be in (0, 1], got 1.4"):
        one_arm(1.4)
    with refuses(InvalidValue, "budget must be in (0, 1], got nan"):
        one_arm(math.nan)


@pytest.mark.parametrize("value", [1, 1.0, np.float32(0.5), np.float64(1e-9), Fraction(1, 3)])
def test_budget_of_any_kind_of_number(value):
    assert one_arm(value).budget == float(value)
    assert type(one_arm(value).budget) is float


@pytest.mark.parametrize("make", [Problem.beta, Problem.bernoulli])
@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_means_that_are_no_numbers(make, value):
    with refuses(InvalidValue, "reward means[1] must be a number, got", repr(value)):
        make([0.5, value], [0.5, 0.5], budget=0.5)
    with refuses(InvalidValue, "cost means[0] must be a number, got", repr(value)):
        make([0.5, 0.5], [value, 0.5], budget=0.5)


@pytest.mark.parametrize("make", [Problem.beta, Problem.bernoulli])
@pytest.mark.parametrize("value", OUTSIDE)
def test_means_outside_their_range(make, value):
    with refuses(InvalidValue, "reward means[1] must be in [0, 1], got"):
        make([0.5, value], [0.5, 0.5], budget=0.5)
    with refuses(InvalidValue, "cost means[0] must be in [0, 1], got"):
        make([0.5, 0.5], [value, 0.5], budget=0.5)


DISTRIBUTIONS = {
    "value of Constant": Constant,
    "mean of Bernoulli": Bernoulli,
    "mean of Beta": Beta,
    "observed value of Empirical": lambda value: Empirical([0.5, value]),
}


@pytest.mark.parametrize("thing", DISTRIBUTIONS)
@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_distributions_of_no_numbers(thing, value):
    with refuses(InvalidValue, f"{thing} must be a number, got", repr(value)):
        DISTRIBUTIONS[thing](value)


@pytest.mark.parametrize("thing", DISTRIBUTIONS)
@pytest.mark.parametrize("value", OUTSIDE)
def test_distributions_outside_the_unit_interval(thing, value):
    with refuses(InvalidValue, f"{thing} must be in [0, 1], got"):
        DISTRIBUTIONS[thing](value)


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_concentration_outside_its_range(value):
    with refuses(InvalidValue, "concentration of Beta must be", "got", value):
        Beta(0.5, value)
    with refuses(InvalidValue, "concentration of Beta must be", "got", value):
        Problem.beta([0.5], [0.5], budget=0.5, concentration=value)


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_concentration_that_is_no_number(value):
    with refuses(InvalidValue, "concentration of Beta must be a number, got", repr(value)):
        Beta(0.5, value)


@pytest.mark.parametrize("value", [0, -3, 2**31, 1.0, "3", True, None, math.nan])
def test_rounds_that_cannot_be_counted(value):
    with refuses(InvalidValue, f"rounds must be a whole number from 1 to {2**31 - 1}, got", repr(value)):
        checks.rounds("rounds", value)


# Problems.


def test_lengths_that_differ():
    with refuses(InvalidValue, "rewards and costs must have the same length, got 2 rewards and 1 costs"):
        Problem.beta([0.5, 0.6], [0.5], budget=0.5)


@pytest.mark.parametrize("make", [Problem, Problem.beta, Problem.bernoulli])
def test_no_arms(make):
    with refuses(InvalidValue, "a problem must have at least one arm, got none"):
        make([], [], 0.5)


def test_no_observed_values():
    with refuses(InvalidValue, "values of Empirical must hold at least one observed value, got none"):
        Empirical([])


@pytest.mark.parametrize("entry", [0.5, "beta", None, Beta])
def test_arms_that_are_no_distributions(entry):
    with refuses(InvalidValue, "costs[1] must be a distribution such as Beta(0.3), got", repr(entry)):
        Problem([Beta(0.5)] * 2, [Beta(0.5), entry], 0.5)


@pytest.mark.parametrize("value", [0.5, None])
def test_one_value_where_a_list_is_wanted(value):
    # A bare number in place of a list of one is an easy slip.
    with refuses(InvalidValue, "reward", "got", repr(value)):
        Problem.beta(value, [0.5], budget=0.5)
    with refuses(InvalidValue, "cost", "got", repr(value)):
        Problem.bernoulli([0.5], value, budget=0.5)
    with refuses(InvalidValue, "Empirical", "got", repr(value)):
        Empirical(value)


def test_one_distribution_where_a_list_is_wanted():
    with refuses(InvalidValue, "rewards", "got", "Beta(mean=0.3"):
        Problem(Beta(0.3), [Beta(0.3)], 0.5)


GOOD = {"rewards": [0.3], "costs": [0.9], "budget": 0.5}
BAD_TABLES = {
    "no table": ("nonsense", ["a problem must be a table", "got 'nonsense'"]),
    "no budget": ({"rewards": [0.3], "costs": [0.9]}, ["missing: budget"]),
    "nothing": ({}, ["missing: rewards, costs, budget"]),
    "unknown key": ({**GOOD, "cost": 3}, ["a problem takes", "got cost"]),
    "no list": ({**GOOD, "rewards": 0.3}, ["rewards must be a list", "got 0.3"]),
    "empty": ({**GOOD, "rewards": [], "costs": []}, ["at least one arm"]),
    "lengths differ": ({**GOOD, "costs": [0.9, 0.8]}, ["same length", "1 rewards and 2 costs"]),
    "budget": ({**GOOD, "budget": 2}, ["budget must be in (0, 1], got 2.0"]),
    "kind": ({**GOOD, "kind": "gamma"}, ["kind of a problem must be one of beta, bernoulli", "got 'gamma'"]),
    "kind is a number": ({**GOOD, "kind": 3}, ["kind of a problem must be one of", "got 3"]),
    "mean": ({**GOOD, "rewards": [1.5]}, ["rewards[0]", "mean of Beta must be in [0, 1], got 1.5"]),
    "mean is a text": ({**GOOD, "costs": ["0.5"]}, ["costs[0]", "must be a number, got '0.5'"]),
    "concentration": ({**GOOD, "concentration": 0}, ["concentration of Beta must be", "got 0.0"]),
    "concentration of bernoulli": (
        {**GOOD, "kind": "bernoulli", "concentration": 10},
        ["concentration is for kind 'beta' only", "bernoulli"],
    ),
    "arm without kind": ({**GOOD, "rewards": [{"mean": 0.3}]}, ["rewards[0] must be a table with a kind", "0.3"]),
    "arm with too little": ({**GOOD, "costs": [{"kind": "constant"}]}, ["constant in costs[0] takes value", "nothing"]),
    "arm with too much": (
        {**GOOD, "costs": [{"kind": "bernoulli", "mean": 0.3, "concentration": 2}]},
        ["bernoulli in costs[0] takes mean", "concentration"],
    ),
    "arm out of range": (
        {**GOOD, "costs": [{"kind": "constant", "value": 7}]},
        ["costs[0]", "value of Constant must be in [0, 1], got 7.0"],
    ),
    "arm with observed values that are no list": (
        {**GOOD, "costs": [{"kind": "empirical", "values": 0.5}]},
        ["costs[0]", "got 0.5"],
    ),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_tables_that_describe_no_problem(name):
    table, words = BAD_TABLES[name]
    with refuses(InvalidValue, *words):
        Problem.from_dict(table)


@pytest.mark.parametrize("kind", ["gamma", 3, None, ["beta"]])
def test_kind_of_an_arm_that_does_not_exist(kind):
    kinds = ", ".join(KINDS)
    assert kinds.startswith("constant, bernoulli, beta, empirical, scaled, shifted")
    with refuses(UnknownName, f"kind of costs[0] must be one of {kinds}, got", repr(kind)):
        Problem.from_dict({**GOOD, "costs": [{"kind": kind, "mean": 0.5}]})


@pytest.mark.parametrize(
    "problem",
    [
        Problem.beta([0.3, 0.0], [0.9, 1.0], budget=1 / 3, concentration=7.5),
        Problem.bernoulli([0.3], [0.9], budget=1),
        Problem([Constant(0.2), Empirical([0.1, 0.1, 0.7])], [Beta(0.5, 2.0), Bernoulli(0.1)], 0.25),
    ],
)
def test_a_problem_survives_its_table(problem):
    assert Problem.from_dict(problem.to_dict()) == problem


# Policies.


@pytest.mark.parametrize("name", ["", "SUAK", "thomson", "one_phase"])
def test_unknown_policy(name):
    with refuses(UnknownName, "policy must be one of", *POLICIES, f"got {name!r}"):
        make_policy(name)


def test_parameters_belong_to_the_object_of_a_policy_not_to_its_name():
    line = "parameters of policy 'one-phase' must be given to pl.OnePhase(...), not to its name, got 'one-phase:a=2'"
    with refuses(InvalidValue, line):
        make_policy("one-phase:a=2")


def test_unknown_parameter():
    with refuses(UnknownParameter, "suak takes order, horizon; got sorting='first'"):
        SUAK(sorting="first")
    with refuses(UnknownParameter, "uniform takes no parameters; got a=3"):
        make_policy("uniform", a=3)


BAD_PARAMETERS = [
    ("suak", "order", "most expensive", "order of suak must be one of first, fewest, cheapest, got 'most expensive'"),
    ("suak", "order", 1, "order of suak must be one of first, fewest, cheapest, got 1"),
    ("suak", "horizon", 0, "horizon of suak must be a whole number from 1"),
    ("suak", "horizon", 1e6, "horizon of suak must be a whole number from 1"),
    ("one-phase", "a", 0.0, "a of one-phase must be a finite number above 0, got 0.0"),
    ("one-phase", "a", math.nan, "a of one-phase must be a finite number above 0, got nan"),
    ("one-phase", "a", math.inf, "a of one-phase must be a finite number above 0, got inf"),
    ("one-phase", "a", "3", "a of one-phase must be a number, got '3'"),
    ("one-phase", "horizon", -1, "horizon of one-phase must be a whole number from 1"),
    ("primal-dual", "a", -1.0, "a of primal-dual must be a finite number above 0, got -1.0"),
    ("primal-dual", "horizon", True, "horizon of primal-dual must be a whole number from 1"),
    ("ucb-simplex", "lam", -9, "lam of ucb-simplex must be a finite number above 0, got -9.0"),
    ("ucb-simplex", "lam", True, "lam of ucb-simplex must be a number, got True"),
]


@pytest.mark.parametrize(("name", "parameter", "value", "message"), BAD_PARAMETERS)
def test_bad_values_of_parameters(name, parameter, value, message):
    with refuses(InvalidValue, message):
        make_policy(name, **{parameter: value})


@pytest.mark.parametrize("name", ["one-phase", "primal-dual"])
def test_a_horizon_that_nobody_gave(name):
    with refuses(InvalidValue, f"{name} must be given a horizon", "got none"):
        make_policy(name).params(Setting(arms=2, rates=(0.5,)))


def test_an_oracle_without_the_truth():
    with refuses(InvalidValue, "oracle must be given the true problem", "got none"):
        make_policy("oracle").params(Setting(arms=2, rates=(0.5,), rounds=100))


@pytest.mark.parametrize("policies", [[3], [None], [SUAK], {"label": 3}, [{"label": SUAK}]])
def test_entries_that_are_no_policies(policies):
    with refuses(InvalidValue, "a policy must be a name or an object such as SUAK(), got"):
        label_policies(policies)


@pytest.mark.parametrize("policies", [3, None, SUAK])
def test_something_else_than_policies(policies):
    with refuses(InvalidValue, "polic", "got", repr(policies)):
        label_policies(policies)


@pytest.mark.parametrize("policies", [[], {}, ()])
def test_no_policies(policies):
    with refuses(InvalidValue, "policies must name at least one policy, got none"):
        label_policies(policies)


@pytest.mark.parametrize("policies", [["suak", "suak"], [SUAK(), SUAK(order="fewest")], ["suak", {"suak": OnePhase()}]])
def test_labels_that_are_equal(policies):
    with refuses(InvalidValue, "labels of policies must differ, got 'suak' twice"):
        label_policies(policies)


def test_labels_make_variants():
    variants = label_policies(["suak", {"two": OnePhase(a=2), "named": "uniform"}])
    assert variants == {"suak": SUAK(), "two": OnePhase(a=2), "named": make_policy("uniform")}
    assert list(variants) == ["suak", "two", "named"]


# One base class to catch them all, and the built-in class that each is a case of.


@pytest.mark.parametrize(
    ("error", "builtin"), [(InvalidValue, ValueError), (UnknownName, LookupError), (UnknownParameter, TypeError)]
)
def test_errors_are_cases_of_built_in_ones(error, builtin):
    assert issubclass(error, PacelineError)
    assert issubclass(error, builtin)
