"""Random problems that anyone can draw again: families to tune on, and others to judge on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue, UnknownName
from paceline.problems.distributions import Bernoulli, Beta, Distribution, Scaled
from paceline.problems.optimum import Optimum, solve
from paceline.problems.problem import Problem

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
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

# Several resources. Whether rewards and whether costs are 0 or 1, by the name of the law; a family takes them in turn.
LAWS = {"beta": (False, False), "bernoulli": (True, True), "mixed": (True, False)}
ARMS_ALONE, WITH_NULL = 3, 2  # cases; in case 1 nothing binds, and there is no budget to pace
# A problem is drawn again when a rate cannot fall by this without a change of base: one more thing hard to tell apart,
CLEAR_ROOM = 0.03
# when a pull of an arm outside of the base loses less than this,
CLEAR_LOSS = 0.02
# and when a rate is below this, which takes arms that refill.
LEAST_RATE = 0.05
ROUNDING = 1e-9


@dataclass(frozen=True)
class Recipe:
    """What sets one kind of problem with one resource apart from the others."""

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


@dataclass(frozen=True)
class SeveralRecipe:
    """What sets one kind of problem with several resources apart from the others."""

    says: str
    binding: str = "some"  # how many of the resources bind: "some" (one at least), "all" or "one"
    refilling: float = 0.0  # chance of an arm to refill one of the resources
    coupled: bool = False
    arms: tuple[int, int] = (3, 20)
    rewards: tuple[float, float] = (0.02, 0.98)
    cases: tuple[int, ...] = (ARMS_ALONE, ARMS_ALONE, ARMS_ALONE, WITH_NULL)


RECIPES: dict[str, Recipe | SeveralRecipe] = {
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
    "resources": SeveralRecipe("several resources of which one or more bind; Beta, of 0 or 1, and mixed in turn"),
    "resources-tight": SeveralRecipe(
        "several resources that all bind, so that the best mix is as large as it can be", "all"
    ),
    "resources-slack": SeveralRecipe("several resources of which just one binds", "one"),
    "resources-correlated": SeveralRecipe("several resources, reward and costs of a pull drawn together", coupled=True),
    "refilling": SeveralRecipe(
        "several resources with costs in [-1, 1]: about one arm in three refills one of them", refilling=1 / 3
    ),
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
    resources: int
    law: str | None = None


@dataclass(frozen=True)
class Draft:
    """The means of a problem with one resource, before it is accepted."""

    rewards: Floats
    costs: Floats
    budget: float
    concentration: float
    chosen: int  # the arm that costs just the budget, where the kind wants one

    @property
    def optimum(self) -> Optimum:
        """The best mix of arms with these means."""
        return solve(self.rewards, self.costs, self.budget)


@dataclass(frozen=True)
class SeveralDraft:
    """The means of a problem with several resources, built around its best base, before it is accepted."""

    rewards: Floats  # (K,)
    costs: Floats  # (K, D)
    rates: Floats  # (D,)
    gaps: Floats  # (K,), 0 for the arms of the base
    base: Ints  # its arms
    bound: Ints  # the resources that bind
    law: str
    concentration: float

    @property
    def rooms(self) -> Floats:
        """(D,): how far each rate can fall until a member of the base is used up (ranging of the right-hand side).

        Members are the arms of the base, the slacks of the resources that do not bind and, if that makes one too few,
        the null arm. With V the inverse of what they use, the amounts are  x = V (c, 1),  and rate i can fall by the
        least  x_r / V[r, i]  over  V[r, i] > 0.
        """
        count = self.rates.size
        units = np.eye(count + 1)
        arms = np.vstack([self.costs[self.base].T, np.ones(self.base.size)])
        slacks, null = np.delete(units[:, :count], self.bound, axis=1), units[:, count:]
        members = np.hstack([arms, slacks, null])[:, : count + 1]
        inverse = np.linalg.inv(members)
        amounts, responses = inverse @ np.append(self.rates, 1.0), inverse[:, :count]
        falls = np.divide(amounts[:, None], responses, out=np.full_like(responses, np.inf), where=responses > ROUNDING)
        return np.asarray(falls.min(axis=0))


def random(
    kind: str,
    seed: int,
    *,
    arms: int | None = None,
    case: int | None = None,
    budget: float | None = None,
    concentration: float | None = None,
    shortfall: float = SHORTFALL,
    resources: int | None = None,
) -> Problem:
    """A problem of one of the `KINDS`; the same for the same arguments, on any machine.

    Mean costs are uniform in [0.05, 0.95]. Mean rewards lie near an efficient frontier,  A cost^g  minus a shortfall
    that is exponential with mean ``shortfall``, so expensive arms tend to be good ones and several are in the race:
    the smaller the shortfall, the closer the race. A, g, the budget, the number of arms (3 to 10) and the concentration
    are drawn too, unless given. Drawn again: problems with a mean cost within 0.03 of the budget, those in which no arm
    loses 0.01 a pull, and those whose optimum is not of the wanted ``case`` (1: the best arm is affordable, 2: an arm
    and the null arm, 3: two arms).

    Kinds with several ``resources`` (2 unless given; they are called r1, r2, ...) are built around their best base, see
    `draw_around_base`. They have 3 to 20 arms; the null arm is in the base of one in four (``case`` 2, else 3); rates
    follow from the base, so no ``budget`` can be given.

    >>> problem = random("beta", seed=7, case=3)
    >>> problem == random("beta", seed=7, case=3), problem.optimum.case
    (True, 3)
    >>> random("resources-tight", seed=7, resources=3).resources
    ('r1', 'r2', 'r3')
    """
    options = check_options(kind, seed, arms, case, budget, concentration, shortfall, resources)
    return draw_problem(kind, seed, 0, options)


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
    resources: int | None = None,
) -> list[Problem]:
    """So many problems of one kind, drawn as by `random`, the cases that the kind allows in turn.

    With several resources the laws are taken in turn, too: all Beta, all 0 or 1, rewards of 0 or 1 and Beta costs.
    Entry n depends on the kind, the seed and n alone: a larger family begins with the smaller one.

    >>> [problem.optimum.case for problem in family("bernoulli", 4)]
    [1, 2, 3, 1]
    """
    options = check_options(kind, seed, arms, case, budget, concentration, shortfall, resources)
    recipe = RECIPES[kind]
    cases = recipe.cases if case is None else (options.case,)
    laws = tuple(LAWS) if isinstance(recipe, SeveralRecipe) else (None,)
    return [
        draw_problem(kind, seed, n, replace(options, case=cases[n % len(cases)], law=laws[n % len(laws)]))
        for n in range(checks.whole("size", size, 1))
    ]


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
    resources: int | None,
) -> Options:
    """The options in their proper types, or what is wrong with them."""
    recipe = RECIPES[check_kind(kind)]
    checks.seed(seed)
    if isinstance(recipe, SeveralRecipe):
        if budget is not None:
            raise InvalidValue(f"budget must not be given for kind {kind!r}, whose base sets the rates, got {budget!r}")
        count = checks.whole(f"resources of kind {kind!r}", 2 if resources is None else resources, 2)
    else:
        check_for_one_resource(kind, recipe, budget, concentration, resources)
        count = 1
    if case is not None and (isinstance(case, bool) or case not in recipe.cases):
        allowed = " or ".join(map(str, sorted(set(recipe.cases))))
        raise InvalidValue(f"case of kind {kind!r} must be {allowed}, got {case!r}")
    return Options(
        check_given(arms, lambda value: checks.whole("arms", value, 2)),
        case,
        check_given(budget, float),
        check_given(concentration, lambda value: Beta(0.5, value).concentration),
        checks.real("shortfall", shortfall, 0, 1, above_low=True),
        count,
    )


def check_for_one_resource(
    kind: str, recipe: Recipe, budget: float | None, concentration: float | None, resources: int | None
) -> None:
    """Refuse what a kind of problem with one resource cannot have."""
    if resources is not None and (isinstance(resources, bool) or resources != 1):
        raise InvalidValue(f"resources of kind {kind!r} must be 1, got {resources!r}")
    if budget is not None:
        checks.real(f"budget of kind {kind!r}", budget, 0, recipe.most_budget, above_low=True)
    if recipe.binary_rewards and recipe.binary_costs and concentration is not None:
        raise InvalidValue(f"concentration must not be given for kind {kind!r}, which has none, got {concentration!r}")


def check_given(value: Value | None, check: Callable[[Value], Value]) -> Value | None:
    """None, or the value once it has passed its check."""
    return None if value is None else check(value)


def draw_problem(kind: str, seed: int, number: int, options: Options) -> Problem:
    """The first acceptable problem in the stream that belongs to (seed, number, kind)."""
    recipe = RECIPES[kind]
    generator = np.random.default_rng([seed, number, crc32(kind.encode())])
    for _ in range(TRIES):
        if isinstance(recipe, SeveralRecipe):
            around_base = draw_around_base(recipe, generator, options)
            if around_base is not None and is_clear(recipe, around_base):
                return build_several(recipe, around_base)
        else:
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
    return Problem(
        distributions(draft.rewards, recipe.binary_rewards, draft.concentration),
        distributions(draft.costs, recipe.binary_costs, draft.concentration),
        draft.budget,
        coupled=recipe.coupled,
    )


def distributions(means: Floats, binary: bool, concentration: float) -> list[Distribution]:
    """A distribution for each mean; below 0 it is one of refills."""
    found: list[Distribution] = []
    for mean in means.tolist():
        size = Bernoulli(abs(mean)) if binary else Beta(abs(mean), concentration)
        found.append(size if mean >= 0.0 else Scaled(size, -1.0))
    return found


def draw_around_base(recipe: SeveralRecipe, generator: np.random.Generator, options: Options) -> SeveralDraft | None:
    """One draw of a problem whose best base is known beforehand; None where there are too few arms for the base.

    Which arms are in the base, which resources bind (one fewer than the base has members) and the weights x of the
    members are drawn, mean costs are uniform in [0.05, 0.95], those of a refill in [-0.6, -0.05]. The rates are what
    the mix uses,  c_i = rho_i.x,  and 0.05 to 0.3 more where a resource does not bind. Prices lambda of those that bind
    and the level y (0 with the null arm in the base) are drawn so that the best reward on the plane
    mu = y + lambda.rho  is 0.7 to 0.95. Arms of the base lie on the plane, the others below it by 0.02 and an
    exponential shortfall. By duality the base is the best one, the gaps are the distances from the plane.
    """
    law, concentration = str(generator.choice(list(LAWS))), float(generator.choice(CONCENTRATIONS))
    case = WITH_NULL if generator.integers(4) == 0 else ARMS_ALONE
    law, case = options.law or law, options.case or case
    count = options.resources
    fewest, most = {"some": (1, count), "all": (count, count), "one": (1, 1)}[recipe.binding]
    binding = int(generator.integers(fewest, most, endpoint=True))
    in_base = binding + (case == ARMS_ALONE)
    fewest, most = (max(end, in_base + 1) for end in recipe.arms)
    arms = int(generator.integers(fewest, most, endpoint=True))
    arms = arms if options.arms is None else options.arms
    if arms <= in_base:
        return None
    base, bound = generator.permutation(arms)[:in_base], generator.permutation(count)[:binding]
    slack = np.delete(np.arange(count), bound)
    costs = draw_costs(recipe, generator, arms, count)
    rates = generator.dirichlet(np.full(binding + 1, 2.0))[:in_base] @ costs[base]
    rates[slack] += generator.uniform(0.05, 0.3, slack.size)
    level = generator.uniform(0.05, 0.4) if case == ARMS_ALONE else 0.0
    worth = costs[:, bound] @ generator.uniform(0.2, 1.0, binding)
    plane = level + (generator.uniform(0.7, 0.95) - level) * worth / worth.max()
    shortfalls = CLEAR_LOSS + generator.exponential(options.shortfall, arms)
    shortfalls[base] = 0.0
    rewards = np.maximum(plane - shortfalls, recipe.rewards[0])
    concentration = concentration if options.concentration is None else options.concentration
    return SeveralDraft(rewards, costs, rates, plane - rewards, base, bound, law, concentration)


def draw_costs(recipe: SeveralRecipe, generator: np.random.Generator, arms: int, resources: int) -> Floats:
    """(K, D): mean costs; where arms refill, some of them have one below 0."""
    costs = generator.uniform(0.05, 0.95, (arms, resources))
    refilling = np.flatnonzero(generator.random(arms) < recipe.refilling)
    refills = generator.uniform(0.05, 0.6, refilling.size)
    costs[refilling, generator.integers(resources, size=refilling.size)] = -refills
    return costs


def is_clear(recipe: SeveralRecipe, draft: SeveralDraft) -> bool:
    """Whether base, rates and gaps are what they should be, and far enough from what they should not be."""
    low, high = recipe.rewards
    others = np.delete(draft.gaps, draft.base)
    return bool(
        draft.rates.min() >= LEAST_RATE
        and draft.rates.max() <= 1.0
        and low <= draft.rewards.min()
        and draft.rewards.max() <= high
        and draft.gaps[draft.base].min() == 0.0
        and others.min() >= CLEAR_LOSS
        and draft.rooms.min() >= CLEAR_ROOM
    )


def build_several(recipe: SeveralRecipe, draft: SeveralDraft) -> Problem:
    """The problem with the means of a draft around a base."""
    binary_rewards, binary_costs = LAWS[draft.law]
    names = [f"r{number + 1}" for number in range(draft.rates.size)]
    columns = [distributions(column, binary_costs, draft.concentration) for column in draft.costs.T]
    return Problem(
        distributions(draft.rewards, binary_rewards, draft.concentration),
        dict(zip(names, columns, strict=True)),
        dict(zip(names, draft.rates.tolist(), strict=True)),
        coupled=recipe.coupled,
    )
