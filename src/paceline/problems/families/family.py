"""A problem of a kind, and families of them; the same for the same arguments, whatever the processor."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar
from zlib import crc32

import numpy as np

from paceline import checks
from paceline.errors import InvalidValue, UnknownName
from paceline.problems.distributions import Beta
from paceline.problems.families import life, one_resource, recorded, several_resources
from paceline.problems.families.recipe import SHORTFALL, Options, Recipe
from paceline.problems.observed import Observations, Origin
from paceline.problems.problem import Problem

Value = TypeVar("Value")

MOST_ARMS = 10_000  # a table of outcomes takes 1.6 GB then
TRIES = 20_000  # the rarest case of any kind (many, 1) comes up once in five hundred draws

RECIPES: dict[str, Recipe] = {
    **one_resource.RECIPES,
    **several_resources.RECIPES,
    **life.RECIPES,
    **recorded.RECIPES,
}
KINDS: dict[str, str] = {name: recipe.says for name, recipe in RECIPES.items()}


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
    """A problem of one of the `KINDS`; the same for the same arguments.

    It is the same bit for bit on processors with fused multiplication and addition (those since 2013) and the same C
    library; elsewhere last digits may differ.

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
    wanted = Options(arms, case, budget, concentration, shortfall, resources)
    return draw_problem(kind, seed, 0, check_options(kind, seed, wanted))


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
    options = check_options(kind, seed, Options(arms, case, budget, concentration, shortfall, resources))
    laws = RECIPES[kind].laws
    cases = RECIPES[kind].cases if case is None else (case,)
    return [
        draw_problem(kind, seed, n, replace(options, case=cases[n % len(cases)], law=laws[n % len(laws)]))
        for n in range(checks.whole("size", size, 1))
    ]


def check_kind(kind: object) -> str:
    """The name of a kind, if there is one of that name."""
    if not isinstance(kind, str) or kind not in RECIPES:
        raise UnknownName(
            f"kind of problems must be one of {', '.join(RECIPES)}, got {kind!r}{checks.guess(kind, RECIPES)}"
        )
    return kind


def rounds_of(kind: str, otherwise: int) -> int:
    """The rounds that a kind is for, or a number for those that are for any.

    >>> rounds_of("start", 20_000), rounds_of("beta", 20_000)
    (500, 20000)
    """
    return RECIPES[check_kind(kind)].rounds or otherwise


def check_options(kind: str, seed: int, options: Options) -> Options:
    """The options in their proper types, or what is wrong with them."""
    recipe = RECIPES[check_kind(kind)]
    checks.seed(seed)
    recipe.check(kind, options)
    return replace(
        options,
        arms=check_given(options.arms, lambda value: checks.whole("arms", value, 2, MOST_ARMS)),
        budget=check_given(options.budget, float),
        concentration=check_given(options.concentration, lambda value: Beta(0.5, value).concentration),
        shortfall=checks.real("shortfall", options.shortfall, 0, 1, above_low=True),
    )


def check_given(value: Value | None, check: Callable[[Value], Value]) -> Value | None:
    """None, or the value once it has passed its check."""
    return None if value is None else check(value)


def draw_problem(kind: str, seed: int, number: int, options: Options) -> Problem:
    """The first acceptable problem in the stream that belongs to (seed, number, kind)."""
    recipe = RECIPES[kind]
    generator = np.random.default_rng([seed, number, crc32(kind.encode())])
    origin = Origin(kind, seed, number, options.arms)
    for _ in range(TRIES):
        problem = recipe.draw(generator, options, origin)
        if problem is not None:
            return problem
    wanted = ", ".join(f"{name}={value!r}" for name, value in vars(options).items() if value is not None)
    raise InvalidValue(f"a problem of kind {kind!r} must be possible; none in {TRIES:,} draws, got {wanted or 'none'}")


@lru_cache(maxsize=4)
def observations_of(origin: Origin) -> Observations:
    """The table of observed outcomes of a member of a family."""
    options = check_options(origin.kind, origin.seed, Options(arms=origin.arms))
    table = draw_problem(origin.kind, origin.seed, origin.number, options).observations
    if table is None:
        raise InvalidValue(f"family of observed must be a kind with observed outcomes, got {origin.kind!r}")
    return table
