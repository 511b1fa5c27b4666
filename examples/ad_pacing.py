"""Pace an advertising campaign
============================

Money comes in by the clock, traffic in waves, and clicks minutes later.

A campaign has four creatives and 45 dollars a day, which come in by the clock (``hourly``). Requests for an impression
come once a minute at night and a dozen times a minute in the evening. Which creative shall be shown, or none?

- Cost, in dollars: what the auction charges for the impression. It is never more than our bid for the creative, so the
  bid is the creative's ``max_cost``. The notice of the price comes at once, but 2 % of the notices get lost. Such
  impressions expire after ten minutes, and the full bid is charged. Half of the lost notices turn up an hour later and
  put the charge right.
- Reward, in dollars: a click is worth 0.25. It comes within 20 minutes or never.

Money is left over at night, when few requests come, and short in the evening. With ``period`` the bandit learns on the
first day when requests come, and from the second day on it keeps what the evening needs. Without, the pacer takes all
that has come in as leave to spend.

The numbers are made up. The index pacer, with and without the period, and a policy that shows any creative at random
get the same requests with the same prices and clicks.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import drawing
import numpy as np
from later import Post

import paceline as pl

DAYS = 5
MINUTES = DAYS * 24 * 60
DAY = 24 * 60 * 60  # seconds
PER_DAY = 45.0  # dollars
CLICK = 0.25  # dollars
WINDOW = 20 * 60  # seconds in which a click may come
PATIENCE = 10 * 60  # seconds after which the notice of a price is given up
LATE = 60 * 60  # seconds until a lost notice that does turn up


@dataclass(frozen=True)
class Creative:
    """What nobody knows beforehand, but for the bid."""

    bid: float  # dollars
    price: float  # dollars, on average
    clicked: float  # share of the impressions
    colour: str


CREATIVES = {
    "text": Creative(bid=0.004, price=0.002, clicked=0.015, colour=drawing.SKY),
    "banner": Creative(bid=0.012, price=0.007, clicked=0.025, colour=drawing.PINK),
    "carousel": Creative(bid=0.010, price=0.005, clicked=0.050, colour=drawing.ORANGE),
    "video": Creative(bid=0.030, price=0.016, clicked=0.110, colour=drawing.RED),
}


@dataclass(frozen=True)
class Request:
    """A request for an impression, and what would follow whichever creative is shown."""

    time: float  # seconds since the campaign began
    prices: dict[str, float]  # dollars
    clicked: dict[str, bool]
    delay: float  # seconds until the click
    notice: float | None  # seconds until the notice of the price; None: it never comes


def draw_requests(seed: int) -> list[Request]:
    """The traffic of the campaign: quiet at night, more at noon, a peak in the evening."""
    rng = np.random.default_rng(seed)
    hour = np.arange(MINUTES) / 60 % 24
    per_minute = 1.0 + 5.0 * np.exp(-(((hour - 12.5) / 3.5) ** 2)) + 10.0 * np.exp(-(((hour - 20.0) / 2.5) ** 2))
    minutes = np.repeat(np.arange(MINUTES), rng.poisson(per_minute))
    return [
        Request(
            time=time,
            prices={
                name: one.bid * float(rng.beta(4 * one.price / one.bid, 4 - 4 * one.price / one.bid))
                for name, one in CREATIVES.items()
            },
            clicked={name: bool(rng.random() < one.clicked) for name, one in CREATIVES.items()},
            delay=float(rng.uniform(0, WINDOW)),
            notice=[0.0, LATE, None][int(rng.choice(3, p=[0.98, 0.01, 0.01]))],
        )
        for time in np.sort(60 * (minutes + rng.random(minutes.size))).tolist()
    ]


@dataclass
class Campaign:
    """What a policy has made of the requests."""

    bandit: pl.Bandit
    shown: list[str | None]
    clicks: int
    missed: int  # impressions charged at the full bid for want of a notice, some of them only for a while
    lost: int  # those among them whose notice never comes
    books: list[tuple[float, float]]  # at the end of each minute, in dollars: credited, and spent or reserved


def run(policy: str, requests: list[Request], period: float | None = DAY) -> Campaign:
    """The campaign with the live bandit. Money may pile up for a day."""
    post = Post()  # its time is in seconds
    bandit = pl.Bandit(
        arms=list(CREATIVES),
        policy=policy,
        max_cost={name: one.bid for name, one in CREATIVES.items()},
        max_reward=CLICK,
        hourly=PER_DAY / 24,
        cap=PER_DAY,
        period=period,
        seed=1,
        expires=PATIENCE,
        clock=lambda: post.now,
    )
    result = Campaign(bandit, [], 0, 0, 0, [])
    coming = iter([*requests, None])
    request = next(coming)
    for minute in range(1, MINUTES + 1):
        while request is not None and request.time < 60 * minute:
            post.deliver(bandit, request.time)
            show(bandit, post, request, result)
            assert bandit.spent + bandit.reserved <= bandit.credited
            request = next(coming)
        post.deliver(bandit, 60 * minute)
        result.books.append((bandit.credited, bandit.spent + bandit.reserved))
    return result


def show(bandit: pl.Bandit, post: Post, request: Request, result: Campaign) -> None:
    """Ask which creative to show, and send the news of it on its way."""
    decision = bandit.ask()
    arm = decision.arm
    result.shown.append(arm)
    if arm is None:
        return
    if request.notice == 0:
        bandit.tell(decision.id, cost=request.prices[arm])  # frees what was reserved beyond the price
    else:
        result.missed += 1
        result.lost += request.notice is None
        if request.notice is not None:
            post.send(request.notice, decision.id, cost=request.prices[arm])
    # A decision is settled, and the policy learns, once the reward is known too: so no click must be told as well.
    clicked = request.clicked[arm]
    result.clicks += clicked
    post.send(request.delay if clicked else WINDOW, decision.id, reward=CLICK if clicked else 0.0)


def draw(result: Campaign, requests: list[Request], path: Path) -> None:
    """Currency over time above, creatives by the hour below."""
    message = "From the second day on the night's money is kept for the evening"
    with drawing.picture(path, 4.8, message) as figure:
        money, mix = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        credited, used = np.array(result.books).T
        days = np.arange(1, MINUTES + 1) / (24 * 60)
        money.plot(days, credited, color=drawing.BLACK, linewidth=1, label="credited")
        money.plot(days, used, color=drawing.BLUE, label="spent or reserved")
        money.set(ylabel="dollars", ylim=0)
        money.legend(loc="upper left")
        times = [request.time / (24 * 3600) for request in requests]
        drawing.stack(
            mix,
            times,
            result.shown,
            {name: one.colour for name, one in CREATIVES.items()},
            np.arange(24 * DAYS + 1) / 24,
        )
        mix.set(xlabel="days since the campaign began", ylabel="requests per hour")
        drawing.legend_right(mix)


def main() -> None:
    """Run both campaigns, report, draw."""
    out = drawing.folder(__doc__)
    requests = draw_requests(seed=0)
    campaigns = {
        "index": run("index", requests),
        "index without a period": run("index", requests, period=None),
        "uniform": run("uniform", requests),
    }
    credited = campaigns["index"].bandit.credited
    print(f"{len(requests):,} requests in {DAYS} days, {credited:.2f} dollars credited by the clock")
    for name, result in campaigns.items():
        shown = Counter(creative or "none" for creative in result.shown)
        print(f"{name}: {result.clicks} clicks for {result.bandit.spent:.2f} dollars, each worth {CLICK} dollars")
        print("  shown:", ", ".join(f"{creative} {shown[creative]:,}" for creative in (*CREATIVES, "none")))
        print(f"  notices late or lost: {result.missed}, bids charged in full for good: {result.lost}")
    print("promise kept after every request: spent + reserved <= credited")
    draw(campaigns["index"], requests, out / "example-ad-pacing.png")


if __name__ == "__main__":
    main()
