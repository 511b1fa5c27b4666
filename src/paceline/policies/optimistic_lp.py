"""The optimistic linear program and what the field has made of it: UCB-BwK, SW-UCB, and a paced form of our own."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue
from paceline.kernels.estimates import first_unpulled
from paceline.kernels.hull import best_mix
from paceline.kernels.jit import kernel
from paceline.kernels.state import Decision, State
from paceline.policies import optimism
from paceline.policies.long_run import stock_per_round
from paceline.policies.one_phase import horizon_of
from paceline.policies.optimism import draw_from_mix, optimistic_program
from paceline.policies.pacing import REASONS, pace
from paceline.policies.policy import Policy, Setting
from paceline.policies.steering import no_base, remember_base, renew_base, renew_spreads, steer_base
from paceline.policies.window import forget_until, new_ring, note_recent, window_of

Floats = npt.NDArray[np.float64]

FIRST_PULL, DRAWN = len(REASONS), len(REASONS) + 1
RADII = ("hoeffding", "small-mean")
RATES = ("static", "remaining")
BASES = ("paced", "drawn")
LOGARITHMS = ("t", "T", "KDT", "12KT^3", "none")
PUBLISHED = "published"

RECORD = np.dtype((np.record, [("window_until", np.int64)]))  # the round up to which the window is in order


class Params(NamedTuple):
    """Numbers for the kernels."""

    program: optimism.Params
    is_paced: bool
    is_windowed: bool


class Memory(NamedTuple):
    """Of the base, if it is paced (`BaseMemory`), and of the window, if there is one (`Ring`)."""

    credit: Floats
    in_base: npt.NDArray[np.bool_]
    prices: Floats
    spreads: Floats
    recent_pulls: Floats
    recent_reward: Floats
    recent_cost: Floats
    recent_reward_mean: Floats
    recent_width: Floats
    recent_cost_mean: Floats
    ring_pulls: Floats
    ring_reward: Floats
    ring_cost: Floats


@kernel
def follow_program(params: Params, state: State, resources: tuple[int, ...]) -> Decision:
    """The arm that is due, or drawn, under the program in the scratch arrays."""
    if params.is_paced:
        if len(resources) > 1:
            return steer_base(state, state.memory.spreads)
        expensive, cheap, _ = best_mix(state.scratch.rewards, state.scratch.costs[0], state.rate[0])
        return pace(state, expensive, cheap)
    drawn = draw_from_mix(params.program, state, resources)
    return Decision(drawn.arm, DRAWN, drawn.tag)


def choose(params: Params, state: State) -> Decision:
    """Each arm once if nothing else is said of an arm never pulled; then an arm of the optimistic mix."""
    untried = first_unpulled(state.arms)
    if untried >= 0 and params.program.extra == 0:
        return Decision(untried, FIRST_PULL, untried)
    if params.is_windowed:
        optimistic_program(params.program, state, window_of(state.memory))
    else:
        optimistic_program(params.program, state, state.arms)
    return follow_program(params, state, state.resources)


def learn(params: Params, state: State, decision: Decision, reward: float, cost: Floats) -> None:
    """What steering and the window have to know of a round."""
    renew_spreads(state, decision.arm, state.resources)
    if params.is_windowed:
        forget_until(state.memory, state.record, state.resources, state.clock.t)
        if 0 <= decision.arm < state.arms.pulls.size:
            note_recent(state.memory, state.resources, state.clock.t, decision.arm, reward, cost)


def commit(params: Params, state: State, decision: Decision) -> None:
    """With several resources a base that is paced is remembered."""
    if params.is_paced:
        remember_base(state, decision, state.resources)


@dataclass(frozen=True, kw_only=True)
class OptimisticLP(Policy):
    """Solve the linear program for optimistic rewards and costs; pace its base by the headroom, or draw an arm from it.

    Each round t, with means m_i of rewards and r_i of costs over n_i pulls:  max (m_i + e_i).pi  subject to
    (r_i - e_i).pi <= b  on the simplex with a null arm, all bounds cut to [0, 1]  ([-1, 1] where pulls refill, with
    radii twice as wide).

    ``radius``     "hoeffding": e_i = sqrt(s / n_i);  "small-mean": e_i = 2 (sqrt(s m_i / n_i) + s / n_i), each bound
                   with its own mean, on the scale of [0, 1].
    ``a``, ``log`` s = a log t, a log T, a log(K D T), a log(12 K T^3), or with "none" a itself.
    ``extra``      pulls that count besides, with outcomes of 0: sums are divided by n_i + extra. With 0 each arm is
                   pulled once first.
    ``rate``       b is the long-run rate c + start / T ("static"), or what is left per round ("remaining").
    ``shrinkage``  the program is solved at (1 - shrinkage) b;  "published": see `UCBBwK`.
    ``window``     only outcomes of the last so many rounds count.
    ``base``       "paced": the base is paced by the headroom as the other pacers do it (pacing.py, steering.py), at the
                   rate c;  "drawn": an arm is drawn from pi.

    As published by others this is "ucb-bwk" (`UCBBwK`), "sw-ucb" (`SlidingWindowUCB`), and "one-phase" (`OnePhase`,
    which shares the text). The default is our own form: paced, no horizon.

    Guarantee: the anytime constraint, by the guard, on every path. Nothing is proved of the paced form. Drawn, the
    presets say what their authors have proved. Optimism puts costs too low into the program, so that it spends above
    the rate while it explores: behind the guard a drawn base costs thousands of skips, a paced one a few.

    It needs the horizon for "remaining", for "published", and for a logarithm of T.

    >>> OptimisticLP().base, OptimisticLP(base="drawn", rate="remaining", log="T", a=3).horizon
    ('paced', None)
    """

    radius: str = "hoeffding"
    a: float = 2.0
    log: str = "t"
    extra: int = 0
    rate: str = "static"
    shrinkage: float | str = 0.0
    window: int | None = None
    base: str = "paced"
    horizon: int | None = None

    name = "optimistic-lp"
    allocates, tag_is_arm = False, True
    reasons = (*REASONS, "first pull of an arm", "drawn from the optimistic mix")
    record = RECORD
    choose = staticmethod(choose)
    commit = staticmethod(commit)
    learn = staticmethod(learn)
    renew = staticmethod(renew_base)

    def __post_init__(self) -> None:
        checks.one_of(f"radius of {self.name}", self.radius, RADII)
        checks.real(f"a of {self.name}", self.a, 0, above_low=True)
        checks.one_of(f"log of {self.name}", self.log, LOGARITHMS)
        checks.whole(f"extra of {self.name}", self.extra, 0, 1)
        checks.one_of(f"rate of {self.name}", self.rate, RATES)
        if self.shrinkage != PUBLISHED:
            checks.real(f"shrinkage of {self.name} (or {PUBLISHED!r})", self.shrinkage, 0, 1)
        checks.one_of(f"base of {self.name}", self.base, BASES)
        if self.window is not None:
            checks.rounds(f"window of {self.name}", self.window)
        if self.horizon is not None:
            checks.rounds(f"horizon of {self.name}", self.horizon)
        if self.base == "paced" and (self.rate != "static" or self.shrinkage != 0):
            got = f"rate {self.rate!r} and shrinkage {self.shrinkage!r}"
            raise InvalidValue(
                f"a paced base of {self.name} must have the static rate and no shrinkage: the headroom says what is "
                f"left; got {got}"
            )

    def needs_horizon(self) -> bool:
        """Whether it cannot do without."""
        return self.rate == "remaining" or self.shrinkage == PUBLISHED or "T" in self.log

    def params(self, setting: Setting) -> tuple[Any, ...]:
        horizon = horizon_of(self.name, self.horizon, setting) if self.needs_horizon() else setting.rounds or 0
        strength = self.a * self.logarithm(setting.arms, setting.resources, horizon)
        is_static = self.rate == "static"
        program = optimism.Params(
            horizon=0 if is_static else horizon,
            root=math.sqrt(strength),
            lows=setting.lows,
            stock=stock_per_round(setting, horizon if is_static else 0),
            is_growing=self.log == "t",
            is_small_mean=self.radius == "small-mean",
            extra=self.extra,
            kept=1.0 - self.shrinkage_over(setting, horizon, strength),
        )
        return Params(program, self.base == "paced", self.window is not None)

    def logarithm(self, arms: int, resources: int, horizon: int) -> float:
        """The factor of a in s, as far as it is known before the first round."""
        inside = {"T": horizon, "KDT": arms * resources * horizon, "12KT^3": 12 * arms * horizon**3}
        return math.log(inside[self.log]) if self.log in inside else 1.0

    def shrinkage_over(self, setting: Setting, horizon: int, strength: float) -> float:
        """The part of the rate that is left unplanned; as published  sqrt(s K / B) + log(T) s K / B,  1 at most.

        B is the smallest of the budgets c T + start, and at least 1.
        """
        if isinstance(self.shrinkage, str):
            budgets = (rate * horizon + stock for rate, stock in zip(setting.rates, setting.stocks, strict=True))
            load = strength * setting.arms / max(min(budgets), 1.0)
            return min(math.sqrt(load) + math.log(horizon) * load, 1.0)
        return self.shrinkage

    def new_memory(self, arms: int, resources: int) -> Memory:
        return Memory(*no_base(arms, resources), *new_ring(self.window or 0, arms, resources))


@dataclass(frozen=True, kw_only=True)
class UCBBwK(OptimisticLP):
    """UCB-BwK: draw from the optimistic program at a rate that is shrunk a little, with radii for small means.

    Each round  max UCB(m).pi  subject to  LCB(r).pi <= (1 - eps) B / T  on the simplex with a null arm, where a mean
    is m = sum / (n + 1),  its radius  2 (sqrt(s m / (n + 1)) + s / (n + 1)),  s = a log(K D T)  and
    eps = sqrt(s K / B) + log(T) s K / B,  at most 1.  B is the smallest of the budgets c T + start; all are of the size
    of largest cost 1. An arm is drawn from pi; no arm need be pulled first. It is for large budgets: where eps is 1 it
    plans to spend nothing.

    Reference: Agrawal, Devanur, "Bandits with concave rewards and convex knapsacks" (EC 2014). ``shrinkage=0`` is the
    program of Bernasconi, Castiglioni, Celli, Fusco, "Beyond primal-dual methods in bandits with stochastic and
    adversarial constraints" (NeurIPS 2024) where constraints are i.i.d.: rewards by a regret minimiser on the moving
    set of mixes that the optimistic costs allow. Their constraints are soft: `simulate` it with ``guard=False``.

    Guarantee: for a total budget B with a stop at depletion, regret O~(sqrt(K OPT) + OPT sqrt(K / B)). Without
    stopping, O~(sqrt(K T)) of regret and of violation, without a Slater constant. Under the anytime guard nothing is
    proved. It needs the horizon. Costs below 0 are moved to the scale of [0, 1] first, which the radius supposes.

    Second-hand: the formulas of m, of the radius and of eps, which were written down from memory and from Sankararaman,
    Slivkins, "Combinatorial semi-bandits with knapsacks" (2018), whose runs have eps = 0 and s = 5 (``a=5,
    log="none", shrinkage=0``).

    >>> UCBBwK(shrinkage=0).log
    'KDT'
    """

    radius: str = "small-mean"
    a: float = 1.0
    log: str = "KDT"
    extra: int = 1
    shrinkage: float | str = PUBLISHED
    base: str = "drawn"

    name = "ucb-bwk"


@dataclass(frozen=True, kw_only=True)
class SlidingWindowUCB(OptimisticLP):
    """SW-UCB: draw from the optimistic program for the outcomes of the last rounds, where the means may drift.

    Each round  max UCB(m).pi  subject to  LCB(r).pi <= c + start / T,  with sums over the last ``window`` rounds
    divided by n + 1 and the radius  sqrt(2 log(12 K T^3) / (n + 1)),  cut to [0, 1]. An arm that is not in the window
    has a radius of 1: it is tried again.

    Reference: Liu, Jiang, Li, "Non-stationary bandits with knapsacks" (NeurIPS 2022). There is one window for rewards
    and one for costs there,  min(ceil(K^(1/3) V^(-2/3) T^(2/3)), T)  with V the sum of the changes of the means from
    round to round; here it is one for both, and `window_for` has the formula.

    Guarantee: for a total budget B = b T and the windows above, regret  O~(sqrt(K T) / b + K^(1/3) V_1^(1/3) T^(2/3)
    + (1 / b) K^(1/3) D V_2^(1/3) T^(2/3) + W_1 + W_2 / b),  with W the distances of the means from their averages. The
    variations must be known. Under the anytime guard nothing is proved, but the line holds all the same: the guard
    knows nothing of distributions. It needs the horizon.

    Second-hand: the bound; the radius and the window are from memory. A window of T rounds is the program without one.

    >>> SlidingWindowUCB.window_for(arms=8, rounds=500_000, variation=1.0)
    12600
    >>> SlidingWindowUCB.window_for(arms=8, rounds=500_000, variation=0.0)
    500000
    """

    log: str = "12KT^3"
    extra: int = 1
    window: int | None = 10_000
    base: str = "drawn"

    name = "sw-ucb"

    @staticmethod
    def window_for(arms: int, rounds: int, variation: float) -> int:
        """The published length of a window, for a sum of changes of the means that is known; all rounds if it is 0."""
        checks.whole("arms", arms, 1)
        checks.rounds("rounds", rounds)
        if checks.real("variation", variation, 0) == 0.0:
            return rounds
        best = math.cbrt(arms * (rounds / variation) ** 2)
        return min(math.ceil(round(best, 6)), rounds)
