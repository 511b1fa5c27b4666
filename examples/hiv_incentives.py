"""Cash for coming: replay a field experiment
==========================================

How much cash should be offered so that people come for the results of their HIV tests? A randomised experiment is
replayed.

Data: Rebecca L. Thornton, "The Demand for, and Impact of, Learning HIV Status", American Economic Review 98 (5), 2008,
1829-1863; the table ``thornton_hiv`` of the package ``causaldata`` by Nick Huntington-Klein (PyPI). In rural Malawi
people who had been tested for HIV drew a voucher of 0 to 300 kwacha, a day's wage on average, to be cashed when they
came for the result. The column ``tinc`` has its amount, ``got`` says who came, ``villnum`` numbers the villages.
``tinc`` is in dollars; all its values are multiples of 0.09456, which is ten kwacha.

A programme that could pay so many kwacha per person, and at no time more, would offer each person one of four vouchers:

    none    0 kwacha            medium   60 to 100
    low     10 to 50            high    110 to 300

- Reward: 1 if the person came for the result.
- Cost, in kwacha: the voucher if the person came, else 0. The largest amount of a group is its ``max_cost``.

`pl.replay` tells a policy the outcomes of those persons who happened to be offered what it asks for, and passes over
the others. Vouchers were not equally likely, and not alike everywhere: in villages numbered 100 and up they are of 0,
50, 100, 200 and 300 kwacha (and one of 20), elsewhere of any multiple of ten. So a group's share among the persons of
the same part of the country is taken as its propensity. These are shares as they turned out, not as they were planned;
the paper reports that fewer zeros were handed out than should have been. The replay is right in as far as chance alone
decided, within a part of the country, who got which voucher. Of 4,820 persons 2,834 have a voucher and a known choice;
four of them have no village and are left out.

A policy may sit a person out. He or she would then have no voucher, so "none" is what such a person is counted at.
"""

from pathlib import Path

import drawing
import numpy as np
import pandas as pd
from causaldata import thornton_hiv  # type: ignore[import-untyped]

import paceline as pl

KWACHA = 0.009456  # dollars
GROUPS = {"none": 0, "low": 50, "medium": 100, "high": 300}  # and the largest voucher of each, in kwacha
DEAREST = max(GROUPS.values())
FREE = 1e-6  # kwacha: a largest cost must be above zero
BUDGETS = [5.0, 10.0, 20.0, 40.0, 70.0, 100.0, 140.0]  # kwacha per person


def persons() -> pd.DataFrame:
    """One row per person: the group of the voucher, its propensity, what it brought and what it cost."""
    data = thornton_hiv.load_pandas().data.dropna(subset=["tinc", "got", "villnum"])
    voucher = (data["tinc"] / KWACHA).round()
    group = pd.cut(voucher, [-1, *GROUPS.values()], labels=list(GROUPS)).astype(str)
    part = data["villnum"] >= 100
    together = group.groupby([part, group]).transform("size")  # persons of the same part with the same group
    return pd.DataFrame(
        {
            "arm": group,
            "reward": data["got"],
            "cost": voucher * data["got"],
            "propensity": together / part.groupby(part).transform("size"),
        }
    )


def came(replay: pl.Replay, policy: str, budget: float) -> tuple[float, float, float]:
    """The share of persons who came, with a 95 % interval, in per cent; those sat out come as with no voucher."""
    one = replay[policy, budget]
    without = one.idle.value * replay.arms["none"].reward.value
    return 100 * (one.reward.value + without), 100 * (one.reward.low + without), 100 * (one.reward.high + without)


def best_mix(replay: pl.Replay, budget: float) -> float:
    """The largest share that could be made to come, in per cent, were the estimated means the true ones."""
    arms = replay.arms.values()
    rewards, costs = [arm.reward.value for arm in arms], [arm.cost.value / DEAREST for arm in arms]
    return 100 * pl.Problem.bernoulli(rewards, costs, budget / DEAREST).optimum.value


def best_single(replay: pl.Replay, budget: float) -> float:
    """The same with one kind of voucher only, offered as often as can be paid for, and none to the others."""
    none = replay.arms["none"].reward.value
    gains = [
        (arm.reward.value - none) * min(1.0, budget / arm.cost.value)
        for name, arm in replay.arms.items()
        if name != "none"
    ]
    return 100 * (none + max(gains))


def draw(replay: pl.Replay, path: Path) -> None:
    """What the policies achieve at each budget, and what one could who knew the means."""
    with drawing.picture(path, 4.4, "Small vouchers go far, and the pacer finds a good mix at every budget") as figure:
        axes = figure.subplots()
        fine = np.linspace(0.5, BUDGETS[-1], 280)
        axes.plot(
            fine, [best_mix(replay, at) for at in fine], color=drawing.BLACK, label="best mix for the estimated means"
        )
        single = [best_single(replay, at) for at in fine]
        axes.plot(
            fine, single, color=drawing.GREY, linestyle="--", label="best single voucher, none where money is short"
        )
        for policy, name, colour, shift in (
            ("index", "index pacer, replayed", drawing.BLUE, -0.7),
            ("uniform", "random voucher, none where money is short, replayed", drawing.ORANGE, 0.7),
        ):
            value, low, high = np.array([came(replay, policy, budget) for budget in BUDGETS]).T
            at = np.array(BUDGETS) + shift
            axes.errorbar(at, value, [value - low, high - value], fmt="o", color=colour, capsize=3, label=name)
        axes.set(xlim=0, xlabel="budget, kwacha per person (100 kwacha = 0.95 dollars)")
        axes.set(ylim=(0, 100), ylabel="came for the result, %")
        axes.legend(loc="lower right")
        source = (
            "Data: Thornton (2008), American Economic Review 98 (5), in the package causaldata. Bars: 95 % intervals."
        )
        figure.supxlabel(source, x=0.01, ha="left", fontsize=8, color=drawing.GREY)


def main() -> None:
    """Replay, report, draw."""
    out = drawing.folder(__doc__)
    table = persons()
    print(f"{len(table):,} persons of Thornton (2008), data of the package causaldata; costs in kwacha")
    replay = pl.replay(
        table,
        ["index", "uniform"],
        budget=BUDGETS,
        propensity="propensity",
        max_cost={name: largest or FREE for name, largest in GROUPS.items()},
        seed=0,
    )
    print(replay.arm_table())
    print(*replay.notes, sep="\n", end="")
    rounds = min(one.rounds for one in replay.values())
    print(f"came for the result, % [95 % interval], in replays of {rounds:.0f} persons or more:")
    for budget in BUDGETS:
        shares = {policy: came(replay, policy, budget) for policy in ("index", "uniform")}
        text = ", ".join(f"{policy} {v:.1f} [{low:.1f}, {high:.1f}]" for policy, (v, low, high) in shares.items())
        known = f"best mix {best_mix(replay, budget):.1f}, best single voucher {best_single(replay, budget):.1f}"
        print(f"  {budget:g} kwacha per person: {text}, {known}")
        assert abs(best_mix(replay, budget) - 100 * replay["index", budget].optimum) < 1e-6
    assert all(one.min_headroom >= 0 for one in replay.values())
    print("promise kept in every round of every replay: spent <= credited")
    draw(replay, out / "example-hiv-incentives.png")


if __name__ == "__main__":
    main()
