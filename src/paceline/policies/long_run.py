"""The long-run rate b = c + B0 / T of each resource: its income, and its start stock spread over the horizon."""

from typing import NamedTuple

from paceline.kernels.jit import kernel
from paceline.kernels.state import State
from paceline.policies.policy import Setting


class LongRun(NamedTuple):
    """What is needed to know the rates in a round."""

    stocks: tuple[float, ...]  # by resource: see `stock_per_round`
    least: float  # a lower rate counts as this one: of a resource without income and stock nothing can be spent anyway


def long_run(setting: Setting, horizon: int) -> LongRun:
    """For so many rounds."""
    return LongRun(stock_per_round(setting, horizon), 1.0 / horizon)


def stock_per_round(setting: Setting, horizon: int) -> tuple[float, ...]:
    """What the start stock of each resource adds to the rate that a policy is shown; 0 without a horizon (0).

    Without income, and where the number of rounds is known, the rate that is shown is the stock spread over them
    (`Policy.new_storage`): nothing is added.

    >>> stock_per_round(Setting(arms=2, rates=(0.5, 0.0), rounds=100, start=(10.0, 30.0)), 100)
    (0.1, 0.0)
    >>> stock_per_round(Setting(arms=2, rates=(0.5, 0.0), start=(10.0, 30.0)), 100)
    (0.1, 0.3)
    """
    return tuple(
        0.0 if horizon == 0 or (rate == 0.0 and setting.rounds is not None) else stock / horizon
        for rate, stock in zip(setting.rates, setting.stocks, strict=True)
    )


def tightest_rate(setting: Setting, horizon: int) -> float:
    """The smallest long-run rate, each in largest costs of its resource, as far as it is known before the first round.

    >>> tightest_rate(Setting(3, (0.5, 0.25), start=(0.0, 100.0)), 1000)
    0.35
    """
    known = zip(setting.rates, setting.stocks, setting.scales, strict=True)
    return min(max(rate + stock / horizon, 1.0 / horizon) / scale for rate, stock, scale in known)


@kernel
def long_run_rate(horizon: LongRun, state: State, d: int) -> float:
    """B of a resource in this round; live, the income may have changed."""
    return float(max(state.rate[d] + horizon.stocks[d], horizon.least))
