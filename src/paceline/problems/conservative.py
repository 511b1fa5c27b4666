"""Conservative bandits: never much below what a default arm would have earned."""

from collections.abc import Sequence

from paceline import checks
from paceline.errors import InvalidValue
from paceline.problems.distributions import (
    Bernoulli,
    Beta,
    Constant,
    Distribution,
    Empirical,
    Scaled,
    Shifted,
    extremes,
)
from paceline.problems.problem import Problem


def conservative(rewards: Sequence[Distribution], default: float, alpha: float) -> Problem:
    """The conservative bandit as a problem: what was earned must stay above a part of what the default arm earns.

    Arm 0 is the default: it earns ``default`` in each round, always. The other arms have the rewards given. For every
    round t, on every path:  sum of rewards up to t >= (1 - alpha) * default * t.

    That is a resource with an income of  alpha * default  a round, the part that may be given away. A pull costs what
    it earns less than the default,  default - reward,  and one that earns more refills it. The default arm costs
    nothing, and where the policy or the guard pulls no arm it is pulled (``fallback``). The null arm would be no way
    out: it earns nothing, and so costs as much as an arm can.

    Any policy that can deal with refills keeps above the bar; no policy is needed of its own. But to a policy a round
    of the fallback is a refusal. Those that play the null arm as an action and learn only from what they played, the
    presets of `Lagrangian` with EXP3, learn nothing of it: with EXP3-SIX they soon want nothing else, and earn what the
    default earns.

    Reference: Wu, Shariff, Lattimore, Szepesvari, "Conservative bandits" (ICML 2016). Their constraint is on the means
    of the pulled arms and holds with probability 1 - delta; here it is on the rewards themselves and holds always,
    which is stricter. For that the default must be known and constant: with random rewards of the default arm nobody
    can promise it.

    >>> problem = conservative([Bernoulli(0.4), Bernoulli(0.7)], default=0.5, alpha=0.1)
    >>> problem.arms, problem.cost_means.round(3).tolist(), problem.optimum.base
    (3, [0.0, 0.1, -0.2], (2,))
    """
    default = checks.real("default", default, 0, 1, above_low=True)
    alpha = checks.real("alpha", alpha, 0, 1, above_low=True)
    costs: list[Distribution] = [Constant(0.0), *(Shifted(negative(reward), default) for reward in rewards)]
    return Problem(
        [Constant(default), *rewards],
        costs,
        budget=alpha * default,
        coupled=True,
        max_costs=[max(extremes(cost)[1], 0.0) for cost in costs],
        fallback=True,
    )


def negative(reward: Distribution) -> Scaled:
    """Minus the reward. Problems whose outcomes are coupled draw both from the same numbers, so it is minus that one.

    >>> negative(Scaled(Beta(0.5), 0.4)).top
    -0.4
    """
    match reward:
        case Scaled(of, top):
            return Scaled(of, -top)
        case Constant() | Bernoulli() | Beta() | Empirical():
            return Scaled(reward, -1.0)
    raise InvalidValue(f"a reward must be a distribution such as Bernoulli(0.3), got {reward!r}")
