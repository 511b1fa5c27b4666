"""Wrong input to a live bandit: one clear error, and nothing has changed."""

import math
import re
from decimal import Decimal

import numpy as np
import pytest
from bookkeeper import refused, unchanged

from paceline import Bandit, Conflict, InvalidValue, OnePhase, UnknownName

NOT_REWARDS = ["0.5", [0.5], {}, 1j, np.array([0.5, 0.5]), Decimal("sNaN")]
NOT_NUMBERS = [True, np.True_, *NOT_REWARDS]
NOT_FINITE = [math.nan, math.inf, -math.inf, np.float64("nan"), 10**400]
SEATED, OPEN, COST_KNOWN, SETTLED, CANCELLED, EXPIRED = 1, 2, 3, 4, 5, 6
ROUNDS = 6

shown = pytest.mark.parametrize("journalled", [False, True], ids=["alone", "with a journal"])


@pytest.fixture(params=["alone", "journalled"])
def bandit(request, tmp_path):
    """One decision of every kind; arms that are active, paused and retired."""
    journal = tmp_path / "journal" if request.param == "journalled" else None
    bandit = Bandit(["a", "b", "c"], 0.0, "uniform", {"a": 0.25, "b": 0.25, "c": 0.25}, scale=2.0, journal=journal)
    bandit.retire("c")
    assert bandit.ask().arm is None
    bandit.credit(50.0)
    assert all(bandit.ask().arm for _ in range(ROUNDS - 1))
    bandit.tell(COST_KNOWN, cost=0.125)
    bandit.tell(SETTLED, reward=1.0, cost=0.125)
    bandit.cancel(CANCELLED)
    bandit.expire(EXPIRED)
    bandit.pause("b")
    yield bandit
    bandit.close()


OPTIONS = [
    ({"journal": 3}, "journal must be the path of a file, got 3"),
    ({"journal": b"journal"}, "journal must be the path of a file, got b'journal'"),
    ({"clock": 5}, "clock must be a function that gives the time in seconds, got 5"),
    ({"fsync": "x"}, "fsync must be True or False, got 'x'"),
    ({"fsync": None}, "fsync must be True or False, got None"),
]


@pytest.mark.parametrize(("options", "line"), OPTIONS, ids=str)
def test_wrong_options_are_one_line_when_the_bandit_is_made(tmp_path, monkeypatch, options, line):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValue, match=rf"\A{re.escape(line)}\Z"):
        Bandit(["a"], 1.0, **{"journal": "new", **options})
    assert not list(tmp_path.iterdir())
    Bandit(["a"], 1.0, journal="journal").close()
    with pytest.raises(InvalidValue, match=rf"\A{re.escape(line)}\Z"):
        Bandit.open(**{"path": options.pop("journal", "journal"), **options})


def test_paths_that_are_none():
    for call in (Bandit(["a"], 1.0).save, Bandit.load):
        with pytest.raises(InvalidValue, match=r"\Apath must be the path of a file, got 3\Z"):
            call(3)


# Numbers of decisions.

CALLS = {
    "tell": lambda bandit, number: bandit.tell(number, reward=0.5, cost=0.1),
    "tell a reward": lambda bandit, number: bandit.tell(number, reward=0.5),
    "tell a cost": lambda bandit, number: bandit.tell(number, cost=0.1),
    "cancel": Bandit.cancel,
    "expire": Bandit.expire,
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@every_call
@pytest.mark.parametrize("number", [0, -1, ROUNDS + 1, 10**30, np.int64(99)])
def test_a_number_that_no_decision_has(bandit, call, number):
    with refused(bandit, UnknownName, f"id must be that of a decision, from 1 to {ROUNDS}, got {number}"):
        call(bandit, number)


@every_call
@pytest.mark.parametrize("number", [None, "2", 2.0, True, [2], math.nan, (2,)])
def test_an_id_that_is_no_whole_number(bandit, call, number):
    with refused(bandit, UnknownName, f"id must be the number of a decision, got {number!r}"):
        call(bandit, number)


@every_call
def test_a_round_that_was_sat_out(bandit, call):
    with refused(bandit, UnknownName, f"decision {SEATED} is not open: it was to sit out, or"):
        call(bandit, SEATED)


@every_call
def test_a_decision_that_was_forgotten(call):
    bandit = Bandit(["a"], 1.0, "uniform", remember=1)
    for _ in range(3):
        bandit.tell(bandit.ask().id, reward=0.5, cost=0.1)
    with refused(bandit, UnknownName, "decision 2 is not open: it was to sit out, or 1 others were settled"):
        call(bandit, 2)
    bandit.tell(3, reward=0.5, cost=0.1)  # the last one is remembered


# Outcomes.


@pytest.mark.parametrize("number", [OPEN, EXPIRED])
@pytest.mark.parametrize("value", NOT_REWARDS, ids=repr)
def test_rewards_that_are_no_numbers(bandit, number, value):
    with refused(bandit, InvalidValue, f"reward of decision {number} must be a number, got {value!r}"):
        bandit.tell(number, reward=value, cost=0.1)


@pytest.mark.parametrize("number", [OPEN, EXPIRED])
@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_costs_that_are_no_numbers(bandit, number, value):
    with refused(bandit, InvalidValue, f"cost of decision {number} ({bandit.pending[number]}) must be a number, got"):
        bandit.tell(number, reward=0.5, cost=value)


@pytest.mark.parametrize("number", [OPEN, EXPIRED])
@pytest.mark.parametrize("value", [-0.1, -5e-324, 1.0000000000000002, 2, *NOT_FINITE])
def test_a_reward_outside_its_range(bandit, number, value):
    with refused(bandit, InvalidValue, f"reward of decision {number} must be in [0, 1], got"):
        bandit.tell(number, reward=value, cost=0.1)
    with refused(bandit, InvalidValue, f"reward of decision {number} must be in [0, 1], got"):
        bandit.tell(number, reward=value)


@pytest.mark.parametrize("number", [OPEN, COST_KNOWN, EXPIRED])
@pytest.mark.parametrize("value", [math.nextafter(0.25, 1), 1, math.nan, math.inf, np.float64("nan"), 10**400])
def test_a_cost_outside_the_range_of_its_arm(bandit, number, value):
    message = f"cost of decision {number} ({bandit.pending[number]}) must be in [0, 0.25], got"
    with refused(bandit, InvalidValue, message):
        bandit.tell(number, reward=0.5, cost=value)
    with refused(bandit, InvalidValue, message):
        bandit.tell(number, cost=value)


@pytest.mark.parametrize("number", [OPEN, COST_KNOWN, EXPIRED])
@pytest.mark.parametrize("value", [-1, -0.1, -5e-324, -math.inf, np.float32(-1.0)])
def test_a_cost_below_0_says_what_would_allow_it(bandit, number, value):
    decision = f"decision {number} ({bandit.pending[number]})"
    message = f"cost of {decision} must be at least 0 (max_refill= says what a pull may bring), got {value!r}"
    with refused(bandit, InvalidValue, message):
        bandit.tell(number, cost=value)


@pytest.mark.parametrize("number", [OPEN, COST_KNOWN, SETTLED, EXPIRED])
def test_neither_reward_nor_cost(bandit, number):
    with refused(
        bandit, InvalidValue, f"tell must be given a reward, a cost or both, got neither for decision {number}"
    ):
        bandit.tell(number)


# News that contradicts.


@pytest.mark.parametrize("outcome", [(0.5, None), (None, 0.25), (0.5, 0.125), (1.0, 0.25)])
def test_other_numbers_than_before(bandit, outcome):
    with refused(bandit, Conflict, f"decision {SETTLED} must keep its"):
        bandit.tell(SETTLED, *outcome)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, *NOT_FINITE, -1.0], ids=repr)
def test_nonsense_for_a_settled_decision(bandit, value):
    outcomes = [{"cost": value}] if isinstance(value, bool | np.bool_) else [{"reward": value}, {"cost": value}]
    for outcome in outcomes:
        with unchanged(bandit), pytest.raises((Conflict, InvalidValue), match=re.escape(f"decision {SETTLED}")):
            bandit.tell(SETTLED, **outcome)


def test_another_cost_while_the_reward_is_missing(bandit):
    with refused(bandit, Conflict, f"decision {COST_KNOWN} must keep its cost 0.125, got 0.25"):
        bandit.tell(COST_KNOWN, reward=0.5, cost=0.25)


def test_another_reward_while_the_cost_is_missing(bandit):
    bandit.tell(OPEN, reward=0.5)
    with refused(bandit, Conflict, f"decision {OPEN} must keep its reward 0.5, got 0.75"):
        bandit.tell(OPEN, reward=0.75, cost=0.1)


@pytest.mark.parametrize("outcome", [(0.5, 0.1), (0.5, None), (None, 0.0)])
def test_an_outcome_after_a_cancel(bandit, outcome):
    with refused(
        bandit, Conflict, f"decision {CANCELLED} was cancelled; it must not be told an outcome, got {outcome}"
    ):
        bandit.tell(CANCELLED, *outcome)


def test_cancel_after_the_outcome(bandit):
    with refused(bandit, Conflict, f"decision {SETTLED} was told its outcome; it must not be cancelled any more"):
        bandit.cancel(SETTLED)


def test_cancel_after_a_part_of_the_outcome(bandit):
    bandit.tell(OPEN, reward=0.5)
    for number in (OPEN, COST_KNOWN):
        with refused(bandit, Conflict, f"decision {number} was told a part of its outcome; it must not be cancelled"):
            bandit.cancel(number)


# Asking, and money.


@pytest.mark.parametrize("value", [*NOT_NUMBERS, *NOT_FINITE, 0, -1.0], ids=repr)
def test_an_expiry_that_is_no_time_to_come(bandit, value):
    with refused(bandit, InvalidValue, "expires must be "):
        bandit.ask(expires=value)


@pytest.mark.parametrize("value", [None, *NOT_NUMBERS, *NOT_FINITE, 0, -0.0, -1.0], ids=repr)
def test_a_credit_that_is_no_amount(bandit, value):
    with refused(bandit, InvalidValue, "credit must be a"):
        bandit.credit(value)


@pytest.mark.parametrize("value", [1e10, 1e200, 1.7e308])
def test_a_credit_beyond_what_can_be_counted(bandit, value):
    with refused(bandit, InvalidValue, "income in all must stay below"):
        bandit.credit(value)


@pytest.mark.parametrize("over", [-1, 2**31, 1.0, "3", True, None])
def test_a_credit_over_rounds_that_cannot_be_counted(bandit, over):
    with refused(bandit, InvalidValue, f"over must be a whole number from 0 to {2**31 - 1}, got {over!r}"):
        bandit.credit(1.0, over=over)


def test_credits_that_add_up_to_too_much():
    bandit = Bandit(["a"])
    bandit.credit(0.7 * 2**30)
    with refused(bandit, InvalidValue, "income in all must stay below"):
        bandit.credit(1.4 * 2**30)  # by itself it would not be too much


# Arms.


@pytest.mark.parametrize("how", ["pause", "resume", "retire"])
@pytest.mark.parametrize("arm", ["d", "", "A", None, 0, ["a"], "c"])
def test_an_arm_that_is_not_there(bandit, how, arm):  # c is retired
    with refused(bandit, UnknownName, f"arm must be one of a, b, got {arm!r}"):
        getattr(bandit, how)(arm)


@pytest.mark.parametrize("arm", ["a", "b"])
def test_a_new_arm_with_a_name_that_is_taken(bandit, arm):
    with refused(bandit, InvalidValue, f"names of arms must differ, got {arm!r} twice"):
        bandit.add(arm, 0.5)


def test_the_name_of_a_retired_arm_may_return_once(bandit):
    bandit.add("c", 0.5)
    assert bandit.arms["c"] == "active"
    with refused(bandit, InvalidValue, "names of arms must differ, got 'c' twice"):
        bandit.add("c", 0.5)


@pytest.mark.parametrize("arm", ["", None, 3, b"d", ["d"]])
def test_a_new_arm_without_a_proper_name(bandit, arm):
    with refused(bandit, InvalidValue, f"the name of an arm must be a text that is not empty, got {arm!r}"):
        bandit.add(arm, 0.5)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, *NOT_FINITE, -1.0], ids=repr)
def test_a_new_arm_with_a_largest_cost_that_is_none(bandit, value):
    with refused(bandit, InvalidValue, "max_cost of d must be a"):
        bandit.add("d", value)


def test_a_new_arm_that_is_too_dear(bandit):
    with refused(bandit, InvalidValue, "max_cost of d must be at most the scale of costs, 2 (set scale="):
        bandit.add("d", 2.0000000000000004)
    bandit.add("d", 2.0)


def test_a_new_arm_without_a_largest_cost(bandit):
    with refused(bandit, InvalidValue, "max_cost must have an entry for every arm, got none for 'd'"):
        bandit.add("d")


def test_a_snapshot_without_a_journal():
    bandit = Bandit(["a"])
    with refused(bandit, InvalidValue, "snapshot must have a journal to go with, got a bandit without one; use save"):
        bandit.snapshot()


# Settings.

AN_ARM = "the name of an arm must be a text that is not empty, got "
BAD_SETTINGS = [
    ({"arms": []}, "arms must name at least one arm, got none"),
    ({"arms": "ab"}, "arms must be a list of names, got 'ab'"),
    ({"arms": b"ab"}, "arms must be a list of names, got"),
    ({"arms": None}, "arms must be a list of names, got None"),
    ({"arms": 3}, "arms must be a list of names, got 3"),
    ({"arms": {"a"}}, "arms must be a list of names, got"),
    ({"arms": {"a": 1.0}}, "arms must be a list of names, got"),
    ({"arms": ["a", "a"]}, "names of arms must differ, got 'a' twice"),
    ({"arms": ["a", ""]}, f"{AN_ARM}''"),
    ({"arms": ["a", None]}, f"{AN_ARM}None"),
    ({"arms": [0, 1]}, f"{AN_ARM}0"),
    ({"arms": [["a"]]}, f"{AN_ARM}['a']"),
    ({"budget": -0.1}, "budget must be a finite number of at least 0, got -0.1"),
    ({"budget": math.nan}, "budget must be in [0, "),
    ({"budget": math.inf}, "budget must be in [0, "),
    ({"budget": 1e200}, "budget must be in [0, "),
    ({"budget": "0.5"}, "budget must be a number, got '0.5'"),
    ({"budget": True}, "budget must be a number, got True"),
    ({"budget": None}, "budget must be a number, got None"),
    ({"max_cost": 0, "budget": 0}, "the largest max_cost or the budget must be above 0, got 0 for both"),
    ({"max_cost": -1.0}, "max_cost must be a finite number of at least 0, got -1.0"),
    ({"max_cost": math.nan}, "max_cost must be in ["),
    ({"max_cost": 1e200}, "max_cost must be in ["),
    ({"max_cost": None}, "max_cost must be a number, got None"),
    ({"max_cost": [1.0, 1.0]}, "max_cost must be a number, got [1.0, 1.0]"),
    ({"max_cost": {}}, "max_cost must have one entry for every arm, got no entry for 'a'"),
    ({"max_cost": {"a": 1.0}}, "max_cost must have one entry for every arm, got no entry for 'b'"),
    ({"max_cost": {"a": 1, "b": 1, "c": 1}}, "max_cost must have one entry for every arm, got an entry for 'c'"),
    ({"max_cost": {"a": 1.0, "b": "1"}}, "max_cost of b must be a number, got '1'"),
    ({"max_reward": 0}, "max_reward must be in (0, "),
    ({"max_reward": -1.0}, "max_reward must be a finite number above 0, got -1.0"),
    ({"max_reward": math.inf}, "max_reward must be in (0, "),
    ({"max_reward": None}, "max_reward must be a number, got None"),
    ({"seed": -1}, "seed must be a whole number from 0 to"),
    ({"seed": 2**64}, "seed must be a whole number from 0 to"),
    ({"seed": 0.5}, "seed must be a whole number from 0 to"),
    ({"seed": None}, "seed must be a whole number from 0 to"),
    ({"scale": 0.999}, "scale must be at least the largest max_cost, the budget and max_refill, 1, got 0.999"),
    ({"scale": 1, "budget": 2}, "scale must be at least the largest max_cost, the budget and max_refill, 2, got 1"),
    (
        {"scale": 0.5, "max_cost": {"a": 0.1, "b": 0.6}},
        "scale must be at least the largest max_cost, the budget and max_refill, 0.6",
    ),
    ({"scale": 0}, "scale must be at least the largest max_cost"),
    ({"scale": math.nan}, "scale must be in [0, "),
    ({"scale": 1e200}, "scale must be in [0, "),
    ({"scale": "1"}, "scale must be a number, got '1'"),
    ({"expires": 0}, "expires must be in (0, 1e+11], got 0"),
    ({"expires": -3.0}, "expires must be in (0, 1e+11], got -3.0"),
    ({"expires": math.inf}, "expires must be in (0, 1e+11], got inf"),
    ({"expires": True}, "expires must be a number, got True"),
    ({"remember": -1}, "remember must be a whole number of at least 0, got -1"),
    ({"remember": 1.0}, "remember must be a whole number of at least 0, got 1.0"),
    ({"remember": None}, "remember must be a whole number of at least 0, got None"),
    ({"snapshot_every": 0}, "snapshot_every must be a whole number of at least 1, got 0"),
    ({"snapshot_every": 2.5}, "snapshot_every must be a whole number of at least 1, got 2.5"),
    ({"policy": "oracle"}, "oracle must be given the true problem"),
    ({"policy": "one-phase"}, "one-phase must be given a horizon"),
    ({"policy": "primal-dual"}, "primal-dual must be given a horizon"),
    ({"policy": OnePhase(a=2)}, "one-phase must be given a horizon"),
    ({"policy": "exp3-six"}, "exp3-six must be given a horizon"),
    ({"policy": "primal-dual-bwk", "rounds": 100, "max_refill": 0.5}, "primal-dual-bwk works with costs of at least 0"),
    ({"policy": "kube", "max_refill": 0.5}, "kube works with costs of at least 0 only"),
    ({"policy": "queue", "budget": 0.0}, "queue must be given a Slater constant where a resource has no income"),
    ({"policy": OnePhase}, "a policy must be a name or an object such as SUAK(), got"),
    ({"policy": None}, "a policy must be a name or an object such as SUAK(), got None"),
    ({"policy": ["suak", "thompson"]}, "policy must be one policy, got suak, thompson"),
]


@shown
@pytest.mark.parametrize(("setting", "message"), BAD_SETTINGS, ids=lambda given: repr(given)[:60])
def test_settings_that_are_refused(tmp_path, journalled, setting, message):
    journal = tmp_path / "journal" if journalled else None
    with pytest.raises(InvalidValue, match=rf"\A{re.escape(message)}[^\n]*\Z"):
        Bandit(**{"arms": ["a", "b"], "budget": 0.5, "journal": journal, **setting})
    assert not list(tmp_path.iterdir())


@shown
def test_a_policy_that_does_not_exist(tmp_path, journalled):
    words = r"\Apolicy must be one of .*thompson, .*, got 'thomson'; did you mean 'thompson'\?\Z"
    with pytest.raises(UnknownName, match=words):
        Bandit(["a"], policy="thomson", journal=tmp_path / "journal" if journalled else None)
    assert not list(tmp_path.iterdir())


def test_a_bad_setting_does_not_keep_the_journal(tmp_path):
    Bandit(["a"], 1.0, journal=tmp_path / "journal").close()
    with pytest.raises(InvalidValue, match="snapshot_every must be"):
        Bandit.open(tmp_path / "journal", snapshot_every=0)
    Bandit.open(tmp_path / "journal").close()


# Several resources.

TWO = {"budget": {"money": 0.5, "calls": 1.0}, "max_cost": {"money": {"a": 0.2, "b": 1.0}, "calls": 2.0}}
BAD_RESOURCES = [
    ({"budget": {}}, "budget must name at least one resource, got none"),
    ({"budget": {"": 0.5}}, "the name of a resource in budget must be a text that is not empty, got ''"),
    ({"budget": {3: 0.5}}, "the name of a resource in budget must be a text that is not empty, got 3"),
    ({"budget": {"money": -0.1, "calls": 1.0}}, "budget of 'money' must be a finite number of at least 0, got -0.1"),
    ({"budget": {"money": "0.5", "calls": 1.0}}, "budget of 'money' must be a number, got '0.5'"),
    ({"budget": [0.5, 1.0]}, "budget must be a number, got [0.5, 1.0]"),
    ({"max_cost": {"money": 1.0}}, "max_cost must have an entry for every resource, got none for 'calls'"),
    ({"max_cost": {"money": 1.0, "calls": [1.0, 1.0]}}, "max_cost of 'calls' must be a number, got [1.0, 1.0]"),
    (
        {"max_cost": {"money": {"a": 1.0}, "calls": 1.0}},
        "max_cost of 'money' must have one entry for every arm, got no entry for 'b'",
    ),
    (
        {"max_cost": {"money": {"a": 1.0, "b": -1.0}, "calls": 1.0}},
        "max_cost of 'money' of b must be a finite number of at least 0, got -1.0",
    ),
    (
        {"budget": {"money": 0.5, "calls": 0}, "max_cost": {"money": 1, "calls": 0}},
        "the largest max_cost or the budget of 'calls' must be above 0, got 0 for both",
    ),
    ({"scale": 5.0}, "scale must be given by resource, such as {'money': ...}, got 5.0"),
    (
        {"scale": {"calls": 1.5}},
        "scale of 'calls' must be at least the largest max_cost, the budget and max_refill, 2, got 1.5",
    ),
    ({"scale": {"calls": 2.0}, "max_refill": {"calls": 3.0}}, "scale of 'calls' must be at least"),
    ({"start": 3.0}, "start must be given by resource, such as {'money': ...}, got 3.0"),
    ({"start": {"calls": -1.0}}, "start of 'calls' must be a finite number of at least 0, got -1.0"),
    ({"start": {"calls": 1e12}}, "income of 'calls' in all must stay below"),
    ({"cap": {"calls": math.inf}}, "cap of 'calls' must be in [0, "),
    ({"cap": {"calls": 1.5}}, "cap of 'calls' must cover the largest cost of every arm, 2 rounded up to a unit of"),
    ({"cap": {"calls": 4.0}, "start": {"calls": 5.0}}, "cap of 'calls' must hold the start stock, 5, got 4.0"),
    ({"max_refill": {"calls": -1.0}}, "max_refill of 'calls' must be a finite number of at least 0, got -1.0"),
    (
        {"budget": {"money": 0.5, "calls": 0.0}, "start": {"calls": 5.0}},
        "rounds must say how long the start stock of 'calls' has to last without income, got none",
    ),
    ({"rounds": 0}, "rounds must be a whole number from 1 to"),
    ({"rounds": 10.0}, "rounds must be a whole number from 1 to"),
    ({"policy": "suak"}, "suak works with one resource only, got 2"),
    ({"policy": "ucb-simplex"}, "ucb-simplex works with one resource only, got 2"),
]
BAD_STOCKS = [
    ({"start": 3.0, "budget": 0.0}, "rounds must say how long the start stock has to last without income, got none"),
    ({"start": {"money": 3.0}}, "start must be given without a name, as the one resource has none, got 'money'"),
    ({"cap": 0.5}, "cap must cover the largest cost of every arm, 1 rounded up to a unit of 2.3e-10, got 0.5"),
    ({"cap": 0.3, "max_cost": 0.3, "budget": 0.1}, "cap must cover the largest cost of every arm, 0.3 rounded up to"),
    ({"cap": 2, "start": 3}, "cap must hold the start stock, 3, got 2"),
    ({"max_refill": True}, "max_refill must be a number, got True"),
]


@shown
@pytest.mark.parametrize(
    ("setting", "message"),
    [*(({**TWO, **setting}, message) for setting, message in BAD_RESOURCES), *BAD_STOCKS],
    ids=[repr(setting)[:60] for setting, _ in (*BAD_RESOURCES, *BAD_STOCKS)],
)
def test_resources_that_are_refused(tmp_path, journalled, setting, message):
    journal = tmp_path / "journal" if journalled else None
    with pytest.raises((InvalidValue, UnknownName), match=rf"\A{re.escape(message)}[^\n]*\Z"):
        Bandit(**{"arms": ["a", "b"], "budget": 0.5, "journal": journal, **setting})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("setting", ["max_cost", "scale", "start", "cap", "max_refill"])
def test_a_resource_that_no_budget_names(setting):
    given = {**TWO, setting: {"money": 5.0, "calls": 5.0, "time": 5.0}}
    rule = f"{setting} must be given for the resources money, calls, got one for 'time'"
    with pytest.raises(UnknownName, match=rf"\A{rule}\Z"):
        Bandit(["a", "b"], **given)


@pytest.fixture(params=["alone", "journalled"])
def with_two(request, tmp_path):
    """One decision that waits, one of which a cost is known, and one that is settled."""
    journal = tmp_path / "journal" if request.param == "journalled" else None
    bandit = Bandit(["a", "b"], policy="uniform", cap={"calls": 50.0}, scale={"calls": 60.0}, journal=journal, **TWO)
    bandit.credit({"money": 20.0, "calls": 20.0})
    assert all(bandit.ask().arm for _ in range(3))
    bandit.tell(2, cost={"calls": 0.5})
    bandit.tell(3, 0.5, {"money": 0.1, "calls": 0.5})
    yield bandit
    bandit.close()


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("cost", [0.4, "money", [0.1, 0.2], True])
def test_costs_without_names(with_two, number, cost):
    with refused(with_two, InvalidValue, f"cost must be given by resource, such as {{'money': ...}}, got {cost!r}"):
        with_two.tell(number, 0.5, cost)


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("cost", [{"time": 0.1}, {"time": 0.1, "money": 0.1}, {"money": 0.1, "calls": 0.1, "time": 0}])
def test_costs_of_a_resource_that_is_not_there(with_two, number, cost):
    with refused(with_two, UnknownName, "cost must be given for the resources money, calls, got one for 'time'"):
        with_two.tell(number, 0.5, cost)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, *NOT_FINITE, 3.0, -0.1], ids=repr)
def test_a_bad_cost_beside_a_good_one(with_two, value):
    arm = with_two.pending[1]
    with refused(with_two, InvalidValue, f"cost of 'calls' of decision 1 ({arm}) must be"):
        with_two.tell(1, 0.5, {"money": 0.1, "calls": value})
    with refused(with_two, InvalidValue, f"cost of 'calls' of decision 1 ({arm}) must be"):
        with_two.tell(1, cost={"calls": value})


def test_no_cost_by_name_and_no_reward(with_two):
    for cost in ({}, {"money": None}, None):
        with refused(with_two, InvalidValue, "tell must be given a reward, a cost or both, got neither for decision 1"):
            with_two.tell(1, cost=cost)


@pytest.mark.parametrize("number", [2, 3])
def test_another_cost_of_one_resource(with_two, number):
    with refused(with_two, Conflict, f"decision {number} must keep its cost of 'calls' 0.5, got 0.75"):
        with_two.tell(number, cost={"money": 0.1, "calls": 0.75})


def test_an_outcome_by_name_after_a_cancel(with_two):
    with_two.cancel(1)
    rule = "decision 1 was cancelled; it must not be told an outcome, got (0.5, {'money': 0.1, 'calls': None})"
    with refused(with_two, Conflict, rule):
        with_two.tell(1, 0.5, {"money": 0.1})


@pytest.mark.parametrize(
    ("amount", "error", "message"),
    [
        (5.0, InvalidValue, "credit must be given by resource, such as {'money': ...}, got 5.0"),
        ({}, InvalidValue, "credit must be a number for some resource, got none"),
        ({"money": None}, InvalidValue, "credit must be a number for some resource, got none"),
        ({"time": 1.0}, UnknownName, "credit must be given for the resources money, calls, got one for 'time'"),
        ({"money": 1.0, "calls": 0.0}, InvalidValue, "credit of 'calls' must be a finite number above 0, got 0.0"),
        ({"money": 1.0, "calls": "1"}, InvalidValue, "credit of 'calls' must be a number, got '1'"),
        ({"money": 1.0, "calls": 1e15}, InvalidValue, "income of 'calls' in all must stay below"),
    ],
)
def test_credits_by_resource_that_are_refused(with_two, amount, error, message):
    with refused(with_two, error, message):
        with_two.credit(amount)


@pytest.mark.parametrize(
    ("max_cost", "error", "message"),
    [
        ({"time": 1.0}, UnknownName, "max_cost must be given for the resources money, calls, got one for 'time'"),
        (None, InvalidValue, "max_cost of 'money' must have an entry for every arm, got none for 'c'"),
        ({"calls": 1.0}, InvalidValue, "max_cost of 'money' must have an entry for every arm, got none for 'c'"),
        ({"money": 1.5}, InvalidValue, "max_cost of 'money' of c must be at most the scale of costs, 1 (set scale="),
        ({"money": 1.0, "calls": -1.0}, InvalidValue, "max_cost of 'calls' of c must be a finite number of at least 0"),
        ({"money": 1.0, "calls": 55.0}, InvalidValue, "max_cost of 'calls' of c must be at most the cap, 50, got 55"),
        (55.0, InvalidValue, "max_cost of 'money' of c must be at most the scale of costs, 1 (set scale="),
    ],
)
def test_a_new_arm_by_resource_that_is_refused(with_two, max_cost, error, message):
    with refused(with_two, error, message):
        with_two.add("c", max_cost)


def test_a_debit_so_small_that_its_units_vanish_is_not_free():
    bandit = Bandit(["a"], 0.0, max_cost=2.0**40)
    with refused(bandit, InvalidValue, "debit must be at most the headroom, 0.0, got 5e-324"):
        bandit.debit(5e-324)


@pytest.mark.parametrize("worker", [None, "w"])
def test_numbers_too_long_to_be_written_are_refused_in_one_line(worker):
    bandit = Bandit(["a"], 1.0, worker=worker)
    bandit.ask()
    long = 10**5000 if worker is None else f"w-{'9' * 5000}"
    for call in (
        lambda: bandit.tell(long),
        lambda: bandit.tell(long, 0.5, 0.5),
        lambda: bandit.cancel(long),
        lambda: bandit.expire(long),
        lambda: bandit.look_up(long),
    ):
        with unchanged(bandit), pytest.raises(UnknownName, match="id must be"):
            call()
    with refused(bandit, InvalidValue, "over must be a whole number from 0 to 2147483647, got a number of 16610 bits"):
        bandit.credit(1.0, over=10**5000)
