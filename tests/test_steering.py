"""Steering against a slow, obvious version of its formulas."""

import math

import numpy as np
import pytest

import paceline as pl
from paceline.kernels import lp, steering
from paceline.kernels.jit import bind, plain, plain_throughout

ROUNDING = 1e-9

plainly = {name: plain_throughout(getattr(steering, name)) for name in ("needed_headroom", "steer", "apply_credit")}
compiled = {name: bind(plain(getattr(steering, name)), "tests.test_steering", counted=False) for name in plainly}


def new_steering(arms, resources):
    """Room for one decision."""
    rows = resources + 1
    return steering.Steering(np.zeros(resources), np.zeros(resources), np.zeros(rows), np.zeros(rows), np.zeros(arms))


def known(pulls, variances):
    """Variances with their doubt, as steering wants them."""
    spread = plain(steering.arm_spread)
    rows = zip(variances.tolist(), pulls.tolist(), strict=True)
    return np.array([[spread(value, count) for value in row] for row, count in rows])


class Case:
    """A base for drawn means, and a state to steer in."""

    def __init__(self, rng, arms, resources, unit_costs):
        self.arms, self.resources = arms, tuple(range(resources))
        self.rewards, self.costs = rng.random(arms), rng.random((resources, arms))
        self.rates = rng.uniform(0.05, 0.7, resources)
        self.largest = np.ones((arms, resources)) if unit_costs else rng.uniform(0.2, 1.0, (arms, resources))
        self.pulls = rng.integers(0, 30, arms) * (rng.random(arms) < 0.9)
        self.variances = rng.uniform(0.0, 0.25, (arms, resources)) * (self.pulls > 0)[:, None]
        self.t = int(rng.integers(1, 100_000))
        self.headroom = rng.choice([1.0, 3.0, 10.0, 100.0]) * rng.random(resources) + self.largest.max(axis=0)
        self.credit = rng.normal(0.0, 1.0, arms)
        self.program = lp.new_program(arms, resources)
        lp.solve_in_python(self.rewards, self.costs, self.rates, self.program, self.resources)
        self.room = new_steering(arms, resources)

    def run(self, parts):
        needed = self.program, self.costs, self.rates, self.largest, known(self.pulls, self.variances), self.t
        parts["needed_headroom"](*needed, self.room.needed, self.resources)
        return parts["steer"](self.program, self.headroom, self.largest, self.credit, self.room, self.resources)

    # The text, with the inverse made anew from the members of the base.

    def members(self):
        return self.program.basis.tolist()

    def inverse(self):
        """V, row r for member r, column i for resource i, and the amounts x = V (c, 1)."""
        columns = []
        for member in self.members():
            if member < self.arms:
                columns.append([*self.costs[:, member], 1.0])
            else:
                columns.append(np.eye(len(self.resources) + 1)[member - self.arms - 1])  # null, K, gets the last: -1
        inverse = np.linalg.inv(np.transpose(columns))
        inverse[np.abs(inverse) < ROUNDING] = 0.0
        return inverse, inverse @ [*self.rates, 1.0]

    def naive_needed(self):
        inverse, x = self.inverse()
        members, null = self.members(), self.arms
        in_base = [member for member in members if member < null]
        needed = []
        for i, rate in enumerate(self.rates):
            most = max((self.largest[arm, i] for arm in in_base), default=0.0)
            if null in members:
                needed.append(most)
                continue
            falls = [r for r in range(len(members)) if inverse[r, i] > 0]
            drift = min(x[r] / inverse[r, i] for r in falls)
            mix = {member: max(0.0, x[r] - drift * inverse[r, i]) for r, member in enumerate(members)}
            arms_of_mix = [arm for arm in in_base if mix[arm] > ROUNDING]
            weights = np.array([mix[arm] for arm in arms_of_mix])
            assert weights.sum() == pytest.approx(1.0)
            own = [self.variances[arm, i] + 0.25 / self.pulls[arm] if self.pulls[arm] else 0.25 for arm in arms_of_mix]
            costs = self.costs[i, arms_of_mix]
            spread = weights @ own + weights @ (costs - weights @ costs) ** 2
            given_up = [self.largest[members[r], i] for r in falls if members[r] < null]
            walk = spread / (2 * drift) * math.log(1 + self.t * drift**2 / spread) if drift and spread else 0.0
            kept = max(self.largest[arm, i] for arm in arms_of_mix)
            needed.append(max(given_up, default=most) + kept - rate + drift + 1.5 * walk)
        return np.array(needed)

    def moved(self, x, owed, needed):
        """The amounts, moved towards what is owed until one that counts is used up."""
        step = 1.0
        for r, member in enumerate(self.members()):
            is_plenty = member > self.arms and self.headroom[member - self.arms - 1] >= needed[member - self.arms - 1]
            if owed[r] < 0 and not is_plenty:
                step = min(step, x[r] / -owed[r])
        return np.maximum(x + step * owed, 0.0)

    def naive_shares(self):
        inverse, x = self.inverse()
        members, null, needed = self.members(), self.arms, self.naive_needed()
        surplus = np.zeros(len(self.resources))
        for i in self.resources:
            if null + 1 + i not in members:
                cap = math.inf
                if null not in members:
                    cap = max(self.largest[arm, i] for arm in members if arm < null)
                surplus[i] = min(self.headroom[i] - needed[i], cap)
        short = [] if null in members else [i for i in self.resources if surplus[i] < 0]
        for i in sorted(short, key=lambda i: self.headroom[i] / needed[i]):
            x = self.moved(x, inverse[:, i] * surplus[i], needed)
        x = self.moved(x, inverse[:, :-1] @ np.where(np.isin(self.resources, short), 0.0, surplus), needed)
        shares = {member: x[r] for r, member in enumerate(members) if member < null}
        total = sum(shares.values())
        return {arm: share / total for arm, share in shares.items() if share > ROUNDING}


def cases(count, seed, unit_costs):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        case = Case(rng, int(rng.integers(1, 13)), int(rng.integers(1, 6)), unit_costs)
        if case.program.amounts.min() > 1e-4:  # else an amount is as good as 0, and the base one of several
            yield case


@pytest.mark.parametrize("unit_costs", [True, False])
def test_equals_the_formulas(unit_costs):
    seen = {"null": 0, "two arms": 0, "a slack": 0, "short of a slack": 0, "some arm left out": 0}
    for case in cases(1500, seed=1, unit_costs=unit_costs):
        arm = case.run(plainly)
        np.testing.assert_allclose(case.room.needed, case.naive_needed(), rtol=1e-7, atol=ROUNDING)
        shares = case.naive_shares()
        in_base = [member for member in case.members() if member < case.arms]
        for member in in_base:
            assert case.room.shares[member] == pytest.approx(shares.get(member, 0.0), abs=1e-7)
        waited = sorted(((case.credit[member] + share, member) for member, share in shares.items()), reverse=True)
        assert arm == (waited[0][1] if waited else case.arms)
        slacks = [member - case.arms - 1 for member in case.members() if member > case.arms]
        seen["null"] += case.arms in case.members()
        seen["two arms"] += len(in_base) > 1
        seen["a slack"] += len(slacks) > 0
        seen["short of a slack"] += any(case.headroom[i] < case.room.needed[i] for i in slacks)
        seen["some arm left out"] += len(shares) < len(in_base)
    assert min(seen.values()) > 20, seen


def test_compiled_equals_plain_to_the_bit():
    for case in cases(150, seed=2, unit_costs=False):
        if len(case.resources) == 3:
            arm = case.run(plainly)
            kept = [array.copy() for array in case.room]
            for array in case.room:
                array[:] = math.nan
            case.room.shares[:] = kept[4]  # entries of other arms are left alone
            assert case.run(compiled) == arm
            assert [array.tobytes() for array in case.room] == [array.tobytes() for array in kept]


def test_one_resource_needs_what_the_pacer_needs():
    """2 - c + D + 1.5 B with the drift and the variance of the cheap arm alone; in pacing.py it is 1 B and no D."""
    rewards, costs, rate = np.array([0.9, 0.3]), np.array([[0.8, 0.2]]), np.array([0.5])
    program, room = lp.new_program(2, 1), new_steering(2, 1)
    lp.solve_in_python(rewards, costs, rate, program, (0,))
    variances, pulls = np.array([[0.2], [0.07]]), np.array([10, 25])
    plainly["needed_headroom"](program, costs, rate, np.ones((2, 1)), known(pulls, variances), 1000, room.needed, (0,))
    spread, drift = 0.07 + 0.25 / 25, 0.3
    expected = 2 - 0.5 + drift + 1.5 * spread / (2 * drift) * math.log(1 + 1000 * drift**2 / spread)
    assert room.needed[0] == pytest.approx(expected)
    for headroom, arm in ((expected + 1.0, 0), (expected - 1.0, 1)):
        for credit in ([-9.0, 9.0], [9.0, -9.0]):  # so far from what is needed, credits have no say
            arguments = program, np.array([headroom]), np.ones((2, 1)), np.array(credit), room, (0,)
            assert plainly["steer"](*arguments) == arm


def test_largest_costs_of_one_resource_are_those_of_either_arm():
    """m_j + m_k - c as in pacing.py, and D = 0.3, also where the cheap arm can cost more than the expensive one."""
    rewards, costs, rate = np.array([0.9, 0.3]), np.array([[0.8, 0.2]]), np.array([0.5])
    program, room = lp.new_program(2, 1), new_steering(2, 1)
    lp.solve_in_python(rewards, costs, rate, program, (0,))
    for largest in ([0.9, 0.4], [0.85, 1.0]):
        arguments = program, costs, rate, np.array(largest)[:, None], known(np.array([1, 1]), np.zeros((2, 1))), 0
        plainly["needed_headroom"](*arguments, room.needed, (0,))  # at t = 0 there is no buffer
        assert room.needed[0] == pytest.approx(sum(largest) - 0.5 + 0.3)


def test_no_arm_is_due_when_none_is_in_the_base():
    program, room = lp.new_program(2, 1), new_steering(2, 1)
    lp.solve_in_python(np.zeros(2), np.ones((1, 2)), np.array([0.5]), program, (0,))
    assert plainly["steer"](program, np.array([3.0]), np.ones((2, 1)), np.zeros(2), room, (0,)) == 2


def test_pulls_follow_the_mix_when_nothing_is_owed():
    for case in cases(60, seed=3, unit_costs=True):
        if case.arms in case.members():
            continue
        case.credit[:] = 0.0
        case.run(plainly)
        case.headroom[:] = case.room.needed
        counts = np.zeros(case.arms)
        for _ in range(400):
            arm = case.run(plainly)
            plainly["apply_credit"](case.credit, case.room.shares, case.program.basis, arm)
            counts[arm] += 1
        mix = np.zeros(case.arms)
        for member, amount in zip(case.program.basis, case.program.amounts, strict=True):
            if member < case.arms:
                mix[member] = amount
        assert np.abs(counts - 400 * mix).max() <= 2.0
        assert case.credit.sum() == pytest.approx(0.0, abs=ROUNDING)


def test_steering_reads_credit_and_only_a_pull_changes_it():
    case = next(cases(10, seed=4, unit_costs=True))
    before = case.credit.copy()
    arm = case.run(plainly)
    assert (case.credit == before).all()
    for no_pull in (-1, case.arms):
        plainly["apply_credit"](case.credit, case.room.shares, case.program.basis, no_pull)
        assert (case.credit == before).all()
    plainly["apply_credit"](case.credit, case.room.shares, case.program.basis, arm)
    assert case.credit.sum() == pytest.approx(before.sum())
    assert case.credit[arm] == pytest.approx(before[arm] + case.room.shares[arm] - 1.0)


# Costs that vary little, for which B is next to nothing; and resources of which one has little room and one much.
EASY_TO_REFUSE = {
    "small variance": pl.Problem.beta(
        [0.9, 0.25, 0.1], {"r1": [0.79, 0.06, 0.5], "r2": [0.2, 0.41, 0.3]}, budget={"r1": 0.534, "r2": 0.415}
    ),
    "rooms that differ": pl.Problem.beta(
        [0.724, 0.506, 0.522],
        {"r1": [0.88, 0.12, 0.11], "r2": [0.8, 0.76, 0.82]},
        budget={"r1": 0.211, "r2": 0.804},
        concentration=5.0,
    ),
}


@pytest.mark.parametrize("problem", EASY_TO_REFUSE.values(), ids=EASY_TO_REFUSE)
def test_refusals_do_not_go_on_for_ever(problem):
    """Of 180,000 rounds after the first 20,000 the guard refuses a few at most; it once was hundreds, ever more."""
    assert len(problem.optimum.base) >= 2
    assert problem.arms not in problem.optimum.base
    run = pl.simulate(problem, "oracle", rounds=200_000, trials=3, checkpoints=[20_000])["oracle"]
    assert (run.idle[:, 1] - run.idle[:, 0]).max() <= 5
