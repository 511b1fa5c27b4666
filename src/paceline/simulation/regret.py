"""Regret in three forms, and where it comes from.

With r* the best value per round, y* and lambda* its dual (level and price), N_i the pulls, N_0 all rounds without a
pull, S_c the money spent and gap_i = y* - mu_i + lambda* rho_i:

    empirical regret  = T r* - sum of rewards
    pseudo-regret     = T r* - sum_i mu_i N_i
                      = sum_i gap_i N_i + y* N_0 + lambda* (c T - S_c) + lambda* (S_c - sum_i rho_i N_i)
                        wrong arms        idle     unspent               luck of costs
    steady regret     = the first three terms

The identity is linear programming duality and holds on every path. The luck of costs has mean zero, so steady regret is
an unbiased estimate of the expected regret, and a far less noisy one.
"""

import numpy as np
import numpy.typing as npt

from paceline.errors import InvalidValue
from paceline.problems.problem import Problem
from paceline.simulation.totals import Totals

Floats = npt.NDArray[np.float64]

# The four kinds of rounds of the paper's proof (R_a, R_c, R_b, R_d), as SUAK counts them.
EVENTS = ("guard_skips", "classification_skips", "classification_pulls", "base_rounds")


def empirical(problem: Problem, rounds: npt.NDArray[np.int64], totals: Totals) -> Floats:
    """T r* - sum of rewards."""
    return problem.optimum.value * rounds - totals.earned


def pseudo(problem: Problem, rounds: npt.NDArray[np.int64], totals: Totals) -> Floats:
    """T r* - sum of the mean rewards of the pulled arms: the luck of rewards taken out."""
    return np.asarray(problem.optimum.value * rounds - totals.pulls @ problem.reward_means)


def breakdown(problem: Problem, rounds: npt.NDArray[np.int64], totals: Totals) -> dict[str, Floats]:
    """Pseudo-regret by its causes; the four terms add up to it."""
    best = problem.optimum
    return {
        "wrong_arms": np.asarray(totals.pulls @ best.gaps),
        "idle": np.asarray(best.level * totals.idle, np.float64),
        "unspent": best.price * (problem.budget * rounds - totals.spent),
        "cost_luck": np.asarray(best.price * (totals.spent - totals.pulls @ problem.cost_means)),
    }


def steady(problem: Problem, rounds: npt.NDArray[np.int64], totals: Totals) -> Floats:
    """Pseudo-regret without the luck of costs."""
    terms = breakdown(problem, rounds, totals)
    return terms["wrong_arms"] + terms["idle"] + terms["unspent"]


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
