"""An exact model of stocks, and problems with several resources for an adversary who picks every consumption.

Amounts are fractions here and nothing is rounded. A stock gets its income at the beginning of a round, pays for a pull
when the news of it comes, and never holds more than its cap.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from hypothesis import strategies as st

from paceline.kernels.budget import UNITS
from paceline.problems.distributions import Bernoulli, Constant, Distribution, Scaled, Shifted, extremes
from paceline.problems.problem import Problem

UNIT = Fraction(1, UNITS)


@dataclass
class Stock:
    """One resource."""

    rate: Fraction
    level: Fraction
    cap: Fraction | None
    reserved: Fraction = Fraction(0)
    paid: Fraction = Fraction(0)
    lost: Fraction = Fraction(0)
    lowest: Fraction | None = None

    def fill(self, amount: Fraction) -> None:
        """Something comes in, or goes out; what is above the cap is lost."""
        self.level += amount
        if self.cap is not None and self.level > self.cap:
            self.lost += self.level - self.cap
            self.level = self.cap

    @property
    def free(self) -> Fraction:
        """What is left when every open pull costs as much as it can."""
        return self.level - self.reserved

    def close(self) -> None:
        self.lowest = self.level if self.lowest is None else min(self.lowest, self.level)


@dataclass
class Model:
    """All resources of a problem, and the pulls whose costs are not told yet."""

    problem: Problem
    stocks: list[Stock] = field(init=False)
    t: int = 0
    pulls: int = 0

    def __post_init__(self) -> None:
        self.stocks = [
            Stock(Fraction(rate), Fraction(start), None if cap == float("inf") else Fraction(cap))
            for rate, start, cap in zip(self.problem.rates, self.problem.stocks, self.problem.caps, strict=True)
        ]

    def most(self, arm: int) -> list[Fraction]:
        """The largest cost of an arm, by resource."""
        return [Fraction(side[arm]) for side in self.problem.most]

    def open(self) -> None:
        self.t += 1
        for stock in self.stocks:
            stock.fill(stock.rate)

    def reserve(self, arm: int) -> None:
        for stock, most in zip(self.stocks, self.most(arm), strict=True):
            stock.reserved += most

    def settle(self, arm: int, costs: tuple[float, ...]) -> None:
        self.pulls += 1
        for stock, most, cost in zip(self.stocks, self.most(arm), costs, strict=True):
            stock.reserved -= most
            stock.paid += Fraction(cost)
            stock.fill(-Fraction(cost))
        self.close()

    def close(self) -> None:
        """A round is settled: by the news of a pull, or without one."""
        for stock in self.stocks:
            stock.close()

    @property
    def rounding(self) -> Fraction:
        """How far counts in whole units can be below the truth.

        By less than a unit for the start stock, the cap, the line and a pull in question, for each cost that was paid
        and each that is reserved; and by 2**-63 a round for the rate.
        """
        return (4 + self.pulls + self.t) * UNIT + self.t * Fraction(1, 2**63)


# Problems.

rates = st.sampled_from([0.0, 0.1, 0.3, 1 / 3, 0.5, 1.0, 2**-20]) | st.floats(0, 1)
starts = st.sampled_from([0.0, 0.0, 0.5, 1.0, 3.7]) | st.floats(0, 5)
lows = st.sampled_from([0.0, 0.0, 0.0, -0.25, -1.0]) | st.floats(-1, 0)
highs = st.sampled_from([1.0, 1.0, 0.0, 0.3, 1 - 2**-53, 2**-33, -0.1]) | st.floats(-0.5, 1)


def cost_between(low: float, high: float) -> Distribution:
    """A cost from about ``low`` to about ``high``; only its ends matter here."""
    if low >= 0.0 or low > high:
        high = max(high, 0.0)
        return Constant(0.0) if high == 0.0 else Scaled(Bernoulli(0.5), high)
    if high - low < 2**-30:
        return Scaled(Constant(1.0), low)
    return Shifted(Scaled(Bernoulli(0.5), high - low), low)


@st.composite
def problems(draw: st.DrawFn, resources: int) -> Problem:
    """Problems with any stocks, caps, rates and refills."""
    arms = draw(st.integers(1, 3))
    names = [f"resource {d}" for d in range(resources)]
    costs, budget, start, cap, most = {}, {}, {}, {}, {}
    for name in names:
        side = [cost_between(draw(lows), draw(highs)) for _ in range(arms)]
        # 1 unless something smaller is known.
        most[name] = [max(extremes(cost)[1], 0.0) if draw(st.booleans()) else 1.0 for cost in side]
        costs[name], budget[name], start[name] = side, draw(rates), draw(starts)
        if budget[name] == 0.0 and start[name] == 0.0 and all(extremes(cost)[0] >= 0.0 for cost in side):
            start[name] = 1.5
        if draw(st.booleans()):
            cap[name] = max(*most[name], start[name], 2**-20) + draw(st.sampled_from([0.0, 0.25, 2.0]))
    rewards = [Bernoulli(draw(st.sampled_from([0.1, 0.5, 0.9]))) for _ in range(arms)]
    return Problem(rewards, costs, budget, start=start, cap=cap, max_costs=most)


# How much of what a pull can cost it does cost: 0 for the least, which may be a refill, 1 for the most.
shares = st.sampled_from([0.0, 1.0, 1.0, 0.5, 1 - 2**-53, 2**-40]) | st.floats(0, 1)


def cost_at(problem: Problem, d: int, arm: int, share: float) -> float:
    """That share of the way from the least to the largest cost of an arm."""
    low, high = min(extremes(problem.consumptions[d][arm])[0], 0.0), problem.most[d][arm]
    return high if share == 1.0 else min(max(low + share * (high - low), low), high)
