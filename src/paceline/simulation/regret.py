"""Regret in three forms, and where it comes from.

With r* the best value per round, y* and lambda* its dual (level and prices), N_a the pulls, N_0 all rounds without a
pull, B0 the start stock, S what was spent, and gap_a = y* - mu_a + lambda*.rho_a:

    best              = T y* + lambda*.(B0 + c T),  which is  T r* + lambda*.B0
    empirical regret  = best - sum of rewards
    pseudo-regret     = best - sum_a mu_a N_a
                      = sum_a gap_a N_a + y* N_0 + lambda*.(B0 + c T - S) + lambda*.(S - sum_a rho_a N_a)
                        wrong arms        idle     unspent                  luck of costs
    steady regret     = the first three terms

The identity is linear programming duality and holds on every path, with caps and refills, too (what is lost above a cap
counts as unspent). The luck of costs has mean zero, so steady regret is an unbiased estimate of the expected regret,
and a far less noisy one. A stock without income is spread over the rounds of the run (`Problem.optimum_over`).
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from paceline.errors import InvalidValue
from paceline.problems.problem import Problem
from paceline.simulation.totals import Totals

Floats = npt.NDArray[np.float64]

# The four kinds of rounds of the paper's proof (R_a, R_c, R_b, R_d), as SUAK counts them.
EVENTS = ("guard_skips", "classification_skips", "classification_pulls", "base_rounds")


def best(problem: Problem, rounds: npt.NDArray[np.int64]) -> Floats:
    """What the best mix earns by each of the rounds:  T y* + lambda*.(B0 + c T)."""
    optimum = problem.optimum_over(int(rounds[-1]))
    if not any(problem.stocks):
        return np.asarray(optimum.value * rounds)
    return np.asarray(optimum.level * rounds + income(problem, rounds) @ optimum.prices)


def income(problem: Problem, rounds: npt.NDArray[np.int64]) -> Floats:
    """(C, D): the line of each resource without a cap."""
    return np.asarray(np.array(problem.stocks) + np.outer(rounds, problem.rates))


def empirical(problem: Problem, rounds: npt.NDArray[np.int64], totals: Totals) -> Floats:
    """What the best mix earns minus the sum of rewards."""
    return best(problem, rounds) - totals.earned


def pseudo(problem: Problem, rounds: npt.NDArray[np.int64], totals: Totals) -> Floats:
    """The same with the mean rewards of the pulled arms: the luck of rewards taken out."""
    return np.asarray(best(problem, rounds) - totals.pulls @ problem.reward_means)


def breakdown(
    problem: Problem, rounds: npt.NDArray[np.int64], totals: Totals, by_resource: bool = False
) -> dict[str, Floats]:
    """Pseudo-regret by its causes; the four terms add up to it.

    With ``by_resource`` what is unspent, and the luck of costs, have one more axis, for the resources.
    """
    optimum = problem.optimum_over(int(rounds[-1]))
    spent = totals.spent if len(problem.resources) > 1 else totals.spent[..., np.newaxis]
    unspent = optimum.prices * (income(problem, rounds) - spent)
    luck = optimum.prices * (spent - totals.pulls @ problem.consumption_means)
    return {
        "wrong_arms": np.asarray(totals.pulls @ optimum.gaps),
        "idle": np.asarray(optimum.level * totals.idle, np.float64),
        "unspent": unspent if by_resource else unspent.sum(axis=-1),
        "cost_luck": luck if by_resource else luck.sum(axis=-1),
    }


def steady(parts: Mapping[str, Floats]) -> Floats:
    """Pseudo-regret without the luck of costs, from its breakdown."""
    return parts["wrong_arms"] + parts["idle"] + parts["unspent"]


def rounds_by_event(label: str, totals: Totals) -> dict[str, npt.NDArray[np.int64]]:
    """How many rounds were of each kind of the paper's proof; they add up to the rounds played."""
    if not set(EVENTS) <= set(totals.memory.dtype.names or ()):
        raise InvalidValue(f"rounds by event are counted by suak only, got the run {label!r}")
    return {event: totals.memory[event] for event in EVENTS}


def regret_by_event(label: str, problem: Problem, totals: Totals) -> dict[str, Floats]:
    """Empirical regret by kind of round, the paper's R_a, R_c, R_b and R_d; they add up to it."""
    value = problem.optimum.value
    parts = {event: np.asarray(value * rounds, np.float64) for event, rounds in rounds_by_event(label, totals).items()}
    classification = totals.memory["classification_reward"]
    parts["classification_pulls"] = parts["classification_pulls"] - classification
    parts["base_rounds"] = parts["base_rounds"] - (totals.earned - classification)
    return parts
