"""Other ways to steer: the Thompson pacer's draws and linear program, but pulls drawn from the solution.

Policies as a user would write them. They differ from ``thompson`` with several resources in nothing but what is done
with the solution, so that a comparison with it is one of steering alone.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from paceline.errors import InvalidValue
from paceline.kernels.jit import kernel
from paceline.kernels.lp import solve_program
from paceline.kernels.random import decision_uniform
from paceline.kernels.state import Decision, State, program_in, steering_in
from paceline.policies import thompson
from paceline.policies.optimism import remaining_rate
from paceline.policies.policy import Setting
from paceline.policies.thompson import ThompsonPacer, draw_scores

DRAWN = 1


class Params(NamedTuple):
    """Those of the Thompson pacer, and the horizon."""

    prior: float
    every_arm: bool
    lows: tuple[float, ...]
    horizon: int


@kernel
def solve_and_draw(params: Params, state: State, rates: Any) -> Decision:
    """Solve the program for drawn means at some rates; pull a member of the base with its amount as the chance."""
    scratch, clock = state.scratch, state.clock
    program = program_in(scratch, state.resources)
    draw_scores(params, state)
    solve_program(scratch.rewards, scratch.costs, rates, program, state.resources)
    u = decision_uniform(clock.seed, clock.stream, clock.t)
    for r in range(program.basis.size):
        if program.basis[r] <= scratch.rewards.size:
            u -= program.amounts[r]
            if u < 0.0:
                return Decision(program.basis[r], DRAWN, program.basis[r])
    return Decision(scratch.rewards.size, DRAWN, scratch.rewards.size)


def choose_at_rate(params: Params, state: State) -> Decision:
    """Draw from the solution at the rates of income."""
    return solve_and_draw(params, state, state.rate)


def choose_at_remaining_rate(params: Params, state: State) -> Decision:
    """Draw from the solution at what may be spent per round from now on."""
    rates = steering_in(state.scratch, state.resources).needed
    for d in range(len(state.resources)):
        rates[d] = remaining_rate(state, params.horizon, d)
    return solve_and_draw(params, state, rates)


def commit_prices(_: Params, state: State, decision: Decision) -> None:
    """Keep the prices for the next draws; of a round that the guard refused beforehand there are none."""
    if decision.reason == DRAWN:
        for d in range(len(state.resources)):
            state.memory.prices[d] = program_in(state.scratch, state.resources).prices[d]


@dataclass(frozen=True, kw_only=True)
class Mix(ThompsonPacer):
    """Draw the arm from the solution at the rates of income; the guard alone keeps the line."""

    name = "mix"
    reasons = ("headroom below the largest cost", "drawn from the mix")
    choose = staticmethod(choose_at_rate)
    commit = staticmethod(commit_prices)
    learn = staticmethod(thompson.learn)

    def params(self, setting: Setting) -> tuple[Any, ...]:
        """Those of the Thompson pacer, and the horizon."""
        if setting.resources == 1 or setting.rounds is None:
            raise InvalidValue(f"{self.name} must be given several resources and the rounds of the run, got {setting}")
        return Params(float(self.prior), self.every_arm, setting.lows, setting.rounds)


@dataclass(frozen=True, kw_only=True)
class Resolve(Mix):
    """Draw the arm from the solution at the rate that remains, as One Phase does. It knows the horizon."""

    name = "resolve"
    choose = staticmethod(choose_at_remaining_rate)
