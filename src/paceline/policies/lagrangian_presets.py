"""The systems of others that are Lagrangian games: a primal learner, a dual learner and a bound on the prices each.

They differ in those three, and in what they do when a resource is used up: stop, go on, or play the null arm. Behind
the guard all of them do the last.
"""

from dataclasses import dataclass

from paceline.policies.lagrangian import Lagrangian


@dataclass(frozen=True, kw_only=True)
class LagrangeBwK(Lagrangian):
    """LagrangeBwK: EXP3.P plays the arms, Hedge the resources and time.

    The game of `Lagrangian` with prices  lam_i = y_i / b_i,  y the weights of Hedge over the resources and time, whose
    weight prices nothing.

    Reference: Immorlica, Sankararaman, Schapire, Slivkins, "Adversarial bandits with knapsacks" (FOCS 2019, JACM 2022),
    for a total budget B and stopping at depletion.

    Guarantee: if outcomes are i.i.d., regret (T / B) O(sqrt(K T log(D T / delta))); if an adversary chooses them, a
    ratio of O(D log T) to the best fixed mix, for a variant with a guessed scale of OPT that is not here. T / B is
    infinite for a line that starts at 0, unless income counts as budget; with it the ratio is 1 / c, but the theorem is
    not for income. Under the anytime guard nothing is proved.

    Second-hand: the constants of EXP3.P. A smaller ``delta`` explores more: with 1 / T in place of 0.05 it loses 16,896
    in place of 15,083 on the paper's 3 arms (500,000 rounds, 6 trials, seed 0).

    >>> LagrangeBwK().primal
    'exp3.p'
    """

    primal: str = "exp3.p"

    name = "lagrange-bwk"


@dataclass(frozen=True, kw_only=True)
class BestOfBothWorlds(Lagrangian):
    """The template of Castiglioni, Celli, Kroer: any primal learner, gradient steps on prices with a known bound.

    EXP3.P plays arms for  r - lam.x;  lam moves by projected gradient steps on  {lam >= 0, sum of lam <= 1 / b}.  The
    null arm, which uses nothing, makes the bound known: no mix of arms is worth more than 1 per round.

    Reference: Castiglioni, Celli, Kroer, "Online learning with knapsacks: the best of both worlds" (ICML 2022), for a
    total budget B = b T and the null arm at depletion.

    Guarantee: O(sqrt(K T log(D T / delta)) / b) if outcomes are i.i.d., a ratio of 1 / b to the best fixed mix if an
    adversary chooses them. Income is not in their model; under the anytime guard nothing is proved.

    Our reading: the template leaves the dual learner open. Entropic steps give `LagrangeBwK` behind the guard, so the
    Euclidean ones are taken.

    >>> BestOfBothWorlds().dual
    'ogd'
    """

    primal: str = "exp3.p"
    dual: str = "ogd"

    name = "best-of-both-worlds"


@dataclass(frozen=True, kw_only=True)
class Replenishable(Lagrangian):
    """Replenishable knapsacks: EXP3-SIX plays the arms, prices up to 1 / (rate + refill of the null arm).

    The round is the null arm's, and teaches nobody, whenever a resource is below its largest cost: the rule of our
    guard.

    Reference: Bernasconi, Castiglioni, Celli, Fusco, "Bandits with replenishable knapsacks: the best of both worlds"
    (ICLR 2024). Subtract c from all costs, and the anytime line is their problem with no stock and a null arm that
    refills c in every round.

    Guarantee: O~(sqrt(K T) / c) if outcomes are i.i.d., a constant ratio if an adversary chooses them, when the budget
    is of the order of T or when the refill per round is a positive constant: the abstract covers a line that starts at
    0. Of the systems for adversaries it is the one stated for the problem of this library.

    Second-hand: all but the claims of the abstract. Hedge stands for their dual learner.

    >>> Replenishable().primal
    'exp3-six'
    """

    primal: str = "exp3-six"

    name = "replenishable"


@dataclass(frozen=True, kw_only=True)
class EXP3SIX(Lagrangian):
    """EXP3-SIX against gradient steps on prices without a bound: "No-regret is not enough".

    lam <- [lam + (x - b) / sqrt(T)]_+ without a projection: what a mix of arms can stay below the lines (the Slater
    constant) need not be known, because both learners have little regret on every interval, which keeps lam bounded.

    Reference: Bernasconi, Castiglioni, Celli, "No-regret is not enough! Bandits with general constraints through
    adaptive regret minimization" (NeurIPS 2024).

    Guarantee: regret and violations O~(sqrt(K T)) if outcomes are i.i.d.; a ratio rho / (1 + rho) if an adversary
    chooses them, rho the Slater constant. The promise is soft: constraints hold up to the violations. Behind the guard
    they hold, and nothing is proved of the regret.

    Second-hand: the step. The one of the paper has a constant with which prices hardly move in a million rounds;
    1 / sqrt(T) is its order. Our reading: a loss is divided by  1 + the highest price so far.  Divided by  1 + the
    present price  it loses 3,881 in place of 4,583 on the paper's 3 arms, but then the range shrinks again and the
    learning rate grows, for which no bound is known.

    >>> EXP3SIX().radius is None
    True
    """

    primal: str = "exp3-six"
    dual: str = "ogd"
    radius: float | None = None

    name = "exp3-six"


@dataclass(frozen=True, kw_only=True)
class LagrangeCBwLC(Lagrangian):
    """LagrangeCBwLC without contexts: SquareCB on running means against Hedge.

    Reference: Slivkins, Sankararaman, Foster, "Contextual bandits with packing and covering constraints" (COLT 2023;
    with Zhou, JMLR 2024), whose regressions are running means where there are no contexts.

    Guarantee, with R the regret of the two learners: O((T / B) R) for packing constraints and a stop at depletion, with
    a radius of 1, the default. Where constraints are soft, O((T / B)(1 / zeta) R) of regret and of violations, if some
    optimum stays below the lines by zeta B, the radius is 2 / zeta, and time has the rate (1 - zeta) B / T (which it
    has not here). Its authors say that it is not optimal for B = o(T). Under the anytime guard nothing is proved.

    Our reading: the regressions err by K log T in all, which gives the gamma of SquareCB. It explores far too much:
    ``primal_step=29`` (a gamma of 2,000) loses a fourteenth on the paper's 3 arms. The authors advise to tune it.

    >>> LagrangeCBwLC().primal
    'square-cb'
    """

    primal: str = "square-cb"

    name = "lagrange-cbwlc"
