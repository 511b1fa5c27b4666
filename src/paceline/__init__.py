"""Bandits with anytime knapsacks: choose among options of unknown reward and cost, never above the budget line.

The public names are loaded when first used, so that ``paceline --help`` need not wait for a compiler.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paceline.distributions import Bernoulli, Beta, Constant, Empirical, Scaled
    from paceline.errors import (
        Conflict,
        InvalidValue,
        JournalFailed,
        JournalInUse,
        PacelineError,
        UnknownName,
        UnknownParameter,
        UnreadableFile,
    )
    from paceline.lab import paper, problems, theory
    from paceline.lab.arena import Arena, compare
    from paceline.lab.replay import replay
    from paceline.lab.replayed import Replay
    from paceline.lab.results import Results, Run
    from paceline.lab.run import simulate
    from paceline.live.bandit import Bandit
    from paceline.live.decision import Decision
    from paceline.optimum import Optimum
    from paceline.policies.one_phase import OnePhase
    from paceline.policies.optimistic import OptimisticPacer
    from paceline.policies.oracle import Oracle
    from paceline.policies.policy import Policy
    from paceline.policies.primal_dual import PrimalDual
    from paceline.policies.suak import SUAK
    from paceline.policies.thompson import ThompsonPacer
    from paceline.policies.ucb_simplex import UCBSimplex
    from paceline.policies.uniform import Uniform
    from paceline.problem import Problem
    from paceline.study.experiment import Experiment
    from paceline.study.run import run_experiment
    from paceline.study.study import Study

__version__ = "0.1.0"

_HOMES = {
    "paceline.distributions": ("Bernoulli", "Beta", "Constant", "Empirical", "Scaled"),
    "paceline.errors": (
        "Conflict",
        "InvalidValue",
        "JournalFailed",
        "JournalInUse",
        "PacelineError",
        "UnknownName",
        "UnknownParameter",
        "UnreadableFile",
    ),
    "paceline.lab": ("paper", "problems", "theory"),
    "paceline.lab.arena": ("Arena", "compare"),
    "paceline.lab.replay": ("replay",),
    "paceline.lab.replayed": ("Replay",),
    "paceline.lab.results": ("Results", "Run"),
    "paceline.lab.run": ("simulate",),
    "paceline.live.bandit": ("Bandit",),
    "paceline.live.decision": ("Decision",),
    "paceline.optimum": ("Optimum",),
    "paceline.policies.one_phase": ("OnePhase",),
    "paceline.policies.optimistic": ("OptimisticPacer",),
    "paceline.policies.oracle": ("Oracle",),
    "paceline.policies.policy": ("Policy",),
    "paceline.policies.primal_dual": ("PrimalDual",),
    "paceline.policies.suak": ("SUAK",),
    "paceline.policies.thompson": ("ThompsonPacer",),
    "paceline.policies.ucb_simplex": ("UCBSimplex",),
    "paceline.policies.uniform": ("Uniform",),
    "paceline.problem": ("Problem",),
    "paceline.study.experiment": ("Experiment",),
    "paceline.study.run": ("run_experiment",),
    "paceline.study.study": ("Study",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "SUAK",
    "Arena",
    "Bandit",
    "Bernoulli",
    "Beta",
    "Conflict",
    "Constant",
    "Decision",
    "Empirical",
    "Experiment",
    "InvalidValue",
    "JournalFailed",
    "JournalInUse",
    "OnePhase",
    "OptimisticPacer",
    "Optimum",
    "Oracle",
    "PacelineError",
    "Policy",
    "PrimalDual",
    "Problem",
    "Replay",
    "Results",
    "Run",
    "Scaled",
    "Study",
    "ThompsonPacer",
    "UCBSimplex",
    "Uniform",
    "UnknownName",
    "UnknownParameter",
    "UnreadableFile",
    "compare",
    "paper",
    "problems",
    "replay",
    "run_experiment",
    "simulate",
    "theory",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'paceline' has no attribute {name!r}")
    home = _HOME_OF[name]
    if home == "paceline.lab":
        return import_module(f"{home}.{name}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
