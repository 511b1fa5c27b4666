"""A bandit leaves nothing for Python's garbage collector, so that a program may do without it."""

import gc

import pytest

from paceline import Bandit, InvalidValue, PacelineError
from paceline.compile import compile_ahead
from paceline.policies import make_policy


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def live_through(bandit, numbers):
    """Calls of all kinds, refused ones among them."""
    for number in numbers:
        decision = bandit.ask(key=str(number))
        assert bandit.ask(key=str(number)) == decision
        with pytest.raises(PacelineError):
            bandit.tell("nobody's", reward=1.0)
        if decision.arm is not None:
            with pytest.raises(InvalidValue):
                bandit.tell(decision.id, reward=2.0)
            bandit.tell(decision.id, reward=0.5)
            bandit.tell(decision.id, cost=0.25)
        for end, request in ((bandit.cancel, {"arms": ["a"]}), (bandit.expire, {"max_cost": 0.5})):
            decision = bandit.ask(**request)
            if decision.arm is not None:
                end(decision.id)
        bandit.set(budget=1.0 - number / 1000.0, max_cost={"b": 0.9}, expires=60.0 + number)
        bandit.pause("a")
        bandit.resume("a")
        bandit.credit(2.0)
        bandit.observe("b", 0.5, 0.5)
        bandit.status()


@pytest.mark.parametrize("policy", ["index", "optimistic"])
def test_calls_of_all_kinds_leave_no_cycles(tmp_path, no_collector, policy):
    compile_ahead([make_policy(policy)], ["live"])  # what stands in while code is compiled is left behind then
    options = {"snapshot_every": 100, "rotate_every": 150, "closed": "gzip"}
    bandit = Bandit(["a", "b"], 1.0, start=100.0, policy=policy, journal=tmp_path / "journal", **options)
    live_through(bandit, range(20))  # all compiled code is loaded
    bandit.snapshot()
    gc.collect()
    live_through(bandit, range(20, 120))
    bandit.snapshot()
    assert gc.collect() == 0
    bandit.close()
