"""The policies by name, and what one needs to write another."""

from collections.abc import Mapping, Sequence

from paceline import checks
from paceline.errors import InvalidPolicy, InvalidValue, PacelineError, UnknownName, UnknownParameter, in_one_line
from paceline.kernels.state import SKIP, Decision, State
from paceline.policies.control_budget import ControlBudget
from paceline.policies.epsilon_greedy import EpsilonGreedyPacer
from paceline.policies.greedy import GreedyPacer
from paceline.policies.index import IndexPacer
from paceline.policies.kube import FractionalKUBE
from paceline.policies.lagrangian import Lagrangian
from paceline.policies.lagrangian_presets import EXP3SIX, BestOfBothWorlds, LagrangeBwK, LagrangeCBwLC, Replenishable
from paceline.policies.loading import load_policy_class
from paceline.policies.one_phase import OnePhase
from paceline.policies.optimistic import OptimisticPacer
from paceline.policies.optimistic_lp import OptimisticLP, SlidingWindowUCB, UCBBwK
from paceline.policies.oracle import Oracle
from paceline.policies.policy import Policy, Setting, commit_nothing, learn_nothing
from paceline.policies.primal_dual import PrimalDual
from paceline.policies.primal_dual_bwk import PrimalDualBwK
from paceline.policies.queue import QueuePacer
from paceline.policies.skip_first import SkipFirst
from paceline.policies.suak import SUAK
from paceline.policies.thompson import ThompsonPacer
from paceline.policies.thompson_lp import ThompsonLP
from paceline.policies.ucb_simplex import UCBSimplex
from paceline.policies.uniform import Uniform

__all__ = [
    "POLICIES",
    "SKIP",
    "Decision",
    "Policy",
    "Setting",
    "State",
    "commit_nothing",
    "label_policies",
    "learn_nothing",
    "make_policy",
]

POLICIES: dict[str, type[Policy]] = {
    policy.name: policy
    for policy in (
        IndexPacer,
        ThompsonPacer,
        OptimisticPacer,
        EpsilonGreedyPacer,
        GreedyPacer,
        SUAK,
        OnePhase,
        PrimalDual,
        UCBSimplex,
        SkipFirst,
        ThompsonLP,
        Lagrangian,
        LagrangeBwK,
        BestOfBothWorlds,
        Replenishable,
        EXP3SIX,
        LagrangeCBwLC,
        PrimalDualBwK,
        QueuePacer,
        FractionalKUBE,
        OptimisticLP,
        UCBBwK,
        SlidingWindowUCB,
        ControlBudget,
        Uniform,
        Oracle,
    )
}


def make_policy(name: str, /, **parameters: object) -> Policy:
    """The policy of that name with the given parameters; "module:Class" and "file.py:Class" are names, too.

    >>> make_policy("suak", order="first")
    SUAK(order='first', horizon=None)
    """
    if name in POLICIES:
        return POLICIES[name](**parameters)
    named, _, rest = name.partition(":")
    known = POLICIES.get(named)
    if known is None and (not rest or "=" in rest):  # such as suka:order=first, which is no class
        allowed = f"{', '.join(POLICIES)}, module:Class or file.py:Class"
        raise UnknownName(f"policy must be one of {allowed}, got {named!r}{checks.guess(named, POLICIES)}")
    if known is not None:
        given = f"pl.{known.__name__}(...)"
        raise InvalidValue(
            f"parameters of policy {known.name!r} must be given to {given}, not to its name, got {name!r}"
        )
    found = load_policy_class(name)
    try:
        return found(**parameters)
    except PacelineError:
        raise
    except TypeError as error:  # of a class that is no dataclass
        raise UnknownParameter(f"{name} cannot be made with {parameters!r}: {error}") from None
    except Exception as error:
        raise InvalidPolicy(f"{name} cannot be made with {parameters!r}: {in_one_line(error)}") from error


PolicyLike = str | Policy
PoliciesLike = PolicyLike | Mapping[str, PolicyLike] | Sequence[PolicyLike | Mapping[str, PolicyLike]]


def label_policies(policies: PoliciesLike) -> dict[str, Policy]:
    """Policies by label, from a name, an object, a mapping of labels, or a sequence of any of these.

    >>> label_policies(["suak", {"two": OnePhase(a=2)}])
    {'suak': SUAK(order='fewest', horizon=None), 'two': OnePhase(a=2, horizon=None, time_row=True)}
    """
    found: dict[str, Policy] = {}
    for entry in policies if isinstance(policies, Sequence) and not isinstance(policies, str) else [policies]:
        pairs = entry.items() if isinstance(entry, Mapping) else [(None, entry)]
        for label, given in pairs:
            policy = make_policy(given) if isinstance(given, str) else given
            if not isinstance(policy, Policy):
                raise InvalidValue(f"a policy must be a name or an object such as SUAK(), got {given!r}")
            key = policy.name if label is None else str(label)
            if key in found:
                raise InvalidValue(
                    f"labels of policies must differ, got {key!r} twice; give labels as {{label: policy}}"
                )
            found[key] = policy
    if not found:
        raise InvalidValue("policies must name at least one policy, got none")
    return found
