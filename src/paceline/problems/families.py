"""Random problems that anyone can draw again: families to tune on, and others to judge on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue, UnknownName
from paceline.problems.distributions import Bernoulli, Beta, Distribution
from paceline.problems.optimum import Optimum, solve
from paceline.problems.problem import Problem

Floats = npt.NDArray[np.float64]
Value = TypeVar("Value")

CASES = (1, 2, 3)
CONCENTRATIONS = (5.0, 10.0, 30.0)
# How far an arm falls behind the frontier, on average. With this the Bernoulli and mixed kinds are about as hard for
# SUAK, in units of the limit, as the families on which pacers were first measured (docs/policies.md).
SHORTFALL = 0.1
TRIES = 20_000  # the rarest case of any kind (many, 1) comes up once in five hundred draws

# A problem is drawn again when a mean cost is closer to the budget than this: no horizon would tell them apart ...
CLEAR_COST = 0.03
# ... and when no pull of any arm loses more than this: there would be nothing to learn, and the limit would be 0.
CLEAR_GAP = 0.01


@dataclass(frozen=True)
class Recipe:
    """What sets one kind of problem apart from the others."""

    says: str
    binary_rewards: bool = False
    binary_costs: bool = False
    arms: tuple[int, int] = (3, 10)
    budgets: tuple[float, float] = (0.1, 0.9)
    most_budget: float = 1.0  # that may be asked for
    rewards: tuple[float, float] = (0.02, 0.98)
    scale: float = 1.0  # of the rewards
    clear_costs: bool = True
    at_budget: bool = False
    coupled: bool = False
    cases: tuple[int, ...] = CASES


RECIPES = {
    "beta": Recipe("Beta rewards and costs of concentration 5, 10 or 30"),
    "bernoulli": Recipe("rewards and costs of 0 or 1", binary_rewards=True, binary_costs=True),
    "mixed": Recipe("rewards of 0 or 1, Beta costs", binary_rewards=True),
    "many": Recipe("Beta, 100 arms", arms=(100, 100), clear_costs=False),
    "small-budget": Recipe(
        "rewards of 0 or 1, Beta costs, a budget of 0.01 to 0.05 below them all",
        binary_rewards=True,
        budgets=(0.01, 0.05),
        most_budget=0.05,
        clear_costs=False,
        cases=(2,),
    ),
    "rare": Recipe(
        "rewards of 1 about once in a hundred to a thousand pulls, Beta costs",
        binary_rewards=True,
        rewards=(0.001, 0.01),
        scale=0.01,
    ),
    "at-budget": Recipe(
        "Beta; the mean cost of one arm is just the budget, and the arm is in the best mix",
        clear_costs=False,
        at_budget=True,
        cases=(1, 3),
    ),
    "correlated": Recipe("Beta, reward and cost of a pull drawn together", coupled=True),
}

KINDS: dict[str, str] = {name: recipe.says for name, recipe in RECIPES.items()}


@dataclass(frozen=True)
class Options:
    """What the caller wants to have fixed instead of drawn."""

    arms: int | None
    case: int | None
    budget: float | None
    concentration: float | None
    shortfall: float


@dataclass(frozen=True)
class Draft:
    """The means of a problem, before it is accepted."""

    rewards: Floats
    costs: Floats
    budget: float
    concentration: float
    chosen: int  # the arm that costs just the budget, where the kind wants one

    @property
    def optimum(self) -> Optimum:
        """The best mix of arms with these means."""
        return solve(self.rewards, self.costs, self.budget)


def random(
    kind: str,
    seed: int,
    *,
    arms: int | None = None,
    case: int | None = None,
    budget: float | None = None,
    concentration: float | None = None,
    shortfall: float = SHORTFALL,
) -> Problem:
    """A problem of one of the `KINDS`; the same for the same arguments, on any machine.

    Mean costs are uniform in [0.05, 0.95]. Mean rewards lie near an efficient frontier,  A cost^g  minus a shortfall
    that is exponential with mean ``shortfall``, so expensive arms tend to be good ones and several are in the race:
    the smaller the shortfall, the closer the race. A, g, the budget, the number of arms (3 to 10) and the concentration
    are drawn too, unless given. Drawn again: problems with a mean cost within 0.03 of the budget, those in which no arm
    loses 0.01 a pull, and those whose optimum is not of the wanted ``case`` (1: the best arm is affordable, 2: an arm
    and the null arm, 3: two arms).

    >>> problem = random("beta", seed=7, case=3)
    >>> problem == random("beta", seed=7, case=3), problem.optimum.case
    (True, 3)
    """
    return draw_problem(kind, seed, 0, check_options(kind, seed, arms, case, budget, concentration, shortfall))


def family(
    kind: str,
    size: int,
    seed: int = 0,
    *,
    arms: int | None = None,
    case: int | None = None,
    budget: float | None = None,
    concentration: float | None = None,
    shortfall: float = SHORTFALL,
) -> list[Problem]:
    """So many problems of one kind, drawn as by `random`, the cases that the kind allows in turn.

    Entry n depends on the kind, the seed and n alone: a larger family begins with the smaller one.

    >>> [problem.optimum.case for problem in family("bernoulli", 4)]
    [1, 2, 3, 1]
    """
    options = check_options(kind, seed, arms, case, budget, concentration, shortfall)
    cases = RECIPES[kind].cases if case is None else (options.case,)
    numbers = range(checks.whole("size", size, 1))
    return [draw_problem(kind, seed, n, replace(options, case=cases[n % len(cases)])) for n in numbers]


def check_kind(kind: str) -> str:
    """The name of a kind, if there is one of that name."""
    if not isinstance(kind, str) or kind not in RECIPES:
        raise UnknownName(f"kind of problems must be one of {', '.join(RECIPES)}, got {kind!r}")
    return kind


def check_options(
    kind: str,
    seed: int,
    arms: int | None,
    case: int | None,
    budget: float | None,
    concentration: float | None,
    shortfall: float,
) -> Options:
    """The options in their proper types, or what is wrong with them."""
    recipe = RECIPES[check_kind(kind)]
    checks.seed(seed)
    if recipe.binary_rewards and recipe.binary_costs and concentration is not None:
        raise InvalidValue(f"concentration must not be given for kind {kind!r}, which has none, got {concentration!r}")
    if case is not None and (isinstance(case, bool) or case not in recipe.cases):
        allowed = " or ".join(map(str, recipe.cases))
        raise InvalidValue(f"case of kind {kind!r} must be {allowed}, got {case!r}")
    return Options(
        check_given(arms, lambda value: checks.whole("arms", value, 2)),
        case,
        check_given(
            budget, lambda value: checks.real(f"budget of kind {kind!r}", value, 0, recipe.most_budget, above_low=True)
        ),
        check_given(concentration, lambda value: Beta(0.5, value).concentration),
        checks.real("shortfall", shortfall, 0, 1, above_low=True),
    )


def check_given(value: Value | None, check: Callable[[Value], Value]) -> Value | None:
    """None, or the value once it has passed its check."""
    return None if value is None else check(value)


def draw_problem(kind: str, seed: int, number: int, options: Options) -> Problem:
    """The first acceptable problem in the stream that belongs to (seed, number, kind)."""
    recipe = RECIPES[kind]
    generator = np.random.default_rng([seed, number, crc32(kind.encode())])
    for _ in range(TRIES):
        draft = draw_draft(recipe, generator, options)
        if is_acceptable(recipe, draft, options.case):
            return build_problem(recipe, draft)
    wanted = ", ".join(f"{name}={value!r}" for name, value in vars(options).items() if value is not None)
    raise InvalidValue(f"a problem of kind {kind!r} must be possible; none in {TRIES:,} draws, got {wanted or 'none'}")


def draw_draft(recipe: Recipe, generator: np.random.Generator, options: Options) -> Draft:
    """One draw. What is given is drawn all the same, so that it changes nothing else."""
    arms = int(generator.integers(*recipe.arms, endpoint=True))
    concentration = float(generator.choice(CONCENTRATIONS))
    budget = float(generator.uniform(*recipe.budgets))
    height, bend = generator.uniform(0.7, 0.95), generator.uniform(0.3, 0.9)
    arms = arms if options.arms is None else options.arms
    budget = budget if options.budget is None else options.budget
    chosen = int(generator.integers(arms))
    costs = generator.uniform(0.05, 0.95, arms)
    shortfalls = generator.exponential(options.shortfall, arms)
    if recipe.at_budget:
        costs[chosen] = budget
    rewards = np.clip(recipe.scale * (height * costs**bend - shortfalls), *recipe.rewards)
    return Draft(
        rewards, costs, budget, concentration if options.concentration is None else options.concentration, chosen
    )


def is_acceptable(recipe: Recipe, draft: Draft, case: int | None) -> bool:
    """Whether the problem can be learned, and is of the wanted case and kind."""
    if recipe.clear_costs and np.abs(draft.costs - draft.budget).min() < CLEAR_COST:
        return False
    best = draft.optimum
    return bool(
        best.gaps.max() > CLEAR_GAP * recipe.scale
        and (case is None or best.case == case)
        and (not recipe.at_budget or draft.chosen in best.base)
    )


def build_problem(recipe: Recipe, draft: Draft) -> Problem:
    """The problem with the means of a draft."""

    def arms(means: Floats, binary: bool) -> list[Distribution]:
        return [Bernoulli(mean) if binary else Beta(mean, draft.concentration) for mean in means.tolist()]

    return Problem(
        arms(draft.rewards, recipe.binary_rewards),
        arms(draft.costs, recipe.binary_costs),
        draft.budget,
        coupled=recipe.coupled,
    )
