"""Problems with several resources, built around a best base that is known beforehand."""

from dataclasses import dataclass

import numpy as np

from paceline import checks
from paceline.errors import InvalidValue
from paceline.problems.families.recipe import (
    CONCENTRATIONS,
    Floats,
    Ints,
    Options,
    Recipe,
    check_case,
    distributions,
)
from paceline.problems.observed import Origin
from paceline.problems.problem import Problem

# Whether rewards and whether costs are 0 or 1, by the name of the law; a family takes them in turn.
LAWS = {"beta": (False, False), "bernoulli": (True, True), "mixed": (True, False)}
ARMS_ALONE, WITH_NULL = 3, 2  # cases; in case 1 nothing binds, and there is no budget to pace
# A problem is drawn again when a rate cannot fall by this without a change of base: one more thing hard to tell apart,
CLEAR_ROOM = 0.03
# when a pull of an arm outside of the base loses less than this,
CLEAR_LOSS = 0.02
# and when a rate is below this, which takes arms that refill.
LEAST_RATE = 0.05
ROUNDING = 1e-9
MOST_RESOURCES = 100


@dataclass(frozen=True)
class SeveralRecipe(Recipe):
    """What sets one kind of problem with several resources apart from the others."""

    says: str
    binding: str = "some"  # how many of the resources bind: "some" (one at least), "all" or "one"
    refilling: float = 0.0  # chance of an arm to refill one of the resources
    coupled: bool = False
    arms: tuple[int, int] = (3, 20)
    rewards: tuple[float, float] = (0.02, 0.98)

    cases = (ARMS_ALONE, ARMS_ALONE, ARMS_ALONE, WITH_NULL)
    laws = tuple(LAWS)

    def check(self, kind: str, options: Options) -> None:
        """At least two resources, and no budget."""
        if options.budget is not None:
            got = f"got {options.budget!r}"
            raise InvalidValue(f"budget must not be given for kind {kind!r}, whose base sets the rates, {got}")
        if options.resources is not None:
            checks.whole(f"resources of kind {kind!r}", options.resources, 2, MOST_RESOURCES)
        check_case(kind, options.case, self.cases)

    def draw(self, generator: np.random.Generator, options: Options, origin: Origin) -> Problem | None:  # noqa: ARG002
        """A draft around a base, and its problem if all in it is clear."""
        draft = draw_around_base(self, generator, options)
        return build_several(self, draft) if draft is not None and is_clear(self, draft) else None


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
    count = options.resources or 2
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
    weights = generator.dirichlet(np.full(binding + 1, 2.0))[:in_base]
    rates = (weights[:, None] * costs[base]).sum(axis=0)  # @ would add, and round, as suits the processor
    rates[slack] += generator.uniform(0.05, 0.3, slack.size)
    level = generator.uniform(0.05, 0.4) if case == ARMS_ALONE else 0.0
    worth = (costs[:, bound] * generator.uniform(0.2, 1.0, binding)).T.sum(axis=0)
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


RECIPES: dict[str, Recipe] = {
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
