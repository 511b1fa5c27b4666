"""Sell from a shelf that is filled at a steady rate
=================================================

An offer is made only if the shelf can cover it.

A coffee roastery fills 0.9 bags for every visitor of its shop. Each visitor is shown one offer and takes as many bags
as he or she likes, up to the limit of the offer. Whoever is shown an offer must get all that it allows, so an offer is
made only if so many bags are on the shelf.

- Cost, in bags of coffee: what the visitor takes. The limit of an offer is its ``max_cost``.
- Reward, in euros: the margin on the bags taken.

After a third of the visitors a gift box of up to 8 bags comes in (`Bandit.add`; ``scale`` has left room for it). After
two thirds the pair is retired, because its cartons have run out. The rest goes on with what was learned.

The numbers are made up. The index pacer is compared with a random choice of offers to the same visitors, and with
the best mix for one who knows all means.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import drawing
import numpy as np
import numpy.typing as npt

import paceline as pl

VISITORS = 12_000
GIFT_COMES, PAIR_GOES = VISITORS // 3, 2 * VISITORS // 3
PER_VISITOR = 0.9  # bags that are filled
LARGEST = 8  # bags: no offer is larger, now or later


@dataclass(frozen=True)
class Offer:
    """A visitor takes each of the bags with the same chance."""

    limit: int  # bags
    taken: float  # share of the limit, on average; unknown to the shop
    margin: float  # euros per bag
    colour: str


OFFERS = {
    "single": Offer(limit=1, taken=0.35, margin=4.0, colour=drawing.SKY),
    "pair": Offer(limit=2, taken=0.30, margin=4.0, colour=drawing.BLUE),
    "six-pack": Offer(limit=6, taken=0.35, margin=2.5, colour=drawing.ORANGE),
    "gift box": Offer(limit=LARGEST, taken=0.19, margin=3.3, colour=drawing.RED),
}
LARGEST_MARGIN = max(offer.limit * offer.margin for offer in OFFERS.values())  # euros per visitor


@dataclass
class Shop:
    """What a policy has made of the visitors."""

    shown: list[str | None]
    margins: npt.NDArray[np.float64]  # euros, by visitor
    shelf: list[float]  # bags on the shelf after each visitor


def run(policy: str, seed: int) -> Shop:
    """All visitors with the live bandit."""
    rng = np.random.default_rng(seed)
    taken = {name: rng.binomial(offer.limit, offer.taken, VISITORS).tolist() for name, offer in OFFERS.items()}
    first = {name: offer.limit for name, offer in OFFERS.items() if name != "gift box"}
    bandit = pl.Bandit(
        list(first), PER_VISITOR, policy, max_cost=first, max_reward=LARGEST_MARGIN, seed=1, scale=LARGEST
    )
    shop = Shop([], np.zeros(VISITORS), [])
    for visitor in range(VISITORS):
        if visitor == GIFT_COMES:
            bandit.add("gift box", max_cost=LARGEST)
        if visitor == PAIR_GOES:
            bandit.retire("pair")
        decision = bandit.ask()
        if decision.arm is not None:
            bags = taken[decision.arm][visitor]
            shop.margins[visitor] = bags * OFFERS[decision.arm].margin
            bandit.tell(decision.id, reward=shop.margins[visitor], cost=bags)
        assert bandit.spent + bandit.reserved <= bandit.credited
        shop.shown.append(decision.arm)
        shop.shelf.append(bandit.headroom)
    return shop


def best(names: list[str]) -> float:
    """Euros per visitor of the best mix of these offers for one who knows their means."""
    offers = [OFFERS[name] for name in names]
    problem = pl.Problem.bernoulli(  # only means matter to the best mix
        rewards=[offer.limit * offer.taken * offer.margin / LARGEST_MARGIN for offer in offers],
        costs=[offer.limit * offer.taken / LARGEST for offer in offers],
        budget=PER_VISITOR / LARGEST,
    )
    return problem.optimum.value * LARGEST_MARGIN


def draw(shop: Shop, path: Path) -> None:
    """The shelf above, the offers below."""
    with drawing.picture(
        path, 4.6, "A new offer is taken up, a retired one replaced; the shelf never owes a bag"
    ) as figure:
        shelf, mix = figure.subplots(2, 1, sharex=True, height_ratios=(2, 3))
        shelf.plot(shop.shelf, color=drawing.GREEN, linewidth=0.5)
        shelf.set(ylabel="bags on the shelf", ylim=(0, 24))
        colours = {name: offer.colour for name, offer in OFFERS.items()}
        drawing.stack(mix, range(VISITORS), shop.shown, colours, np.linspace(0, VISITORS, 61))
        mix.set(xlabel="visitors", ylabel="offers per 200 visitors")
        drawing.legend_right(mix)
        for visitor, what in ((GIFT_COMES, "gift box comes"), (PAIR_GOES, "pair is retired")):
            for axes in (shelf, mix):
                axes.axvline(visitor, color=drawing.BLACK, linewidth=1, linestyle=":")
            shelf.annotate(
                what, (visitor, 1), xycoords=("data", "axes fraction"), xytext=(4, -10), textcoords="offset points"
            )


def main() -> None:
    """Run both policies, report, draw."""
    out = drawing.folder(__doc__)
    shops = {policy: run(policy, seed=0) for policy in ("index", "uniform")}
    phases = {
        "before the gift box": (slice(0, GIFT_COMES), ["single", "pair", "six-pack"]),
        "with all offers": (slice(GIFT_COMES, PAIR_GOES), list(OFFERS)),
        "without the pair": (slice(PAIR_GOES, VISITORS), ["single", "six-pack", "gift box"]),
    }
    print(f"{VISITORS:,} visitors, {PER_VISITOR} bags filled for each; margin in euros per visitor:")
    for phase, (visitors, names) in phases.items():
        means = ", ".join(f"{policy} {shop.margins[visitors].mean():.2f}" for policy, shop in shops.items())
        print(f"  {phase}: {means}, best mix {best(names):.2f}")
    for policy, shop in shops.items():
        shown = Counter(name or "none" for name in shop.shown)
        print(f"{policy}: {shop.margins.sum():,.0f} euros; bags on the shelf: {min(shop.shelf):.1f} at least")
        print("  shown:", ", ".join(f"{name} {shown[name]:,}" for name in (*OFFERS, "none")))
    print("promise kept after every visitor: bags taken + bags promised <= bags filled")
    draw(shops["index"], out / "example-inventory.png")


if __name__ == "__main__":
    main()
