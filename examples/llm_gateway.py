"""Send requests to language models under two budgets
==================================================

Dollars, and the tokens that a provider lets through: both lines hold at once.

A gateway gets a request every second and may send it to one of four models, or answer it with a canned text.

- Dollars: 0.004 a request on average. What is not spent is kept.
- Tokens: the provider refills a bucket of 60,000 tokens with 60,000 a minute, that is 1,000 a request. A full bucket
  overflows, so tokens cannot be saved up for ever: the resource has a ``cap``. A call that would empty the bucket is
  refused with error 429.
- Reward: the grade that a user or a judge gives, from 0 to 1.

The most that a call can use is known: the limit of tokens that is sent along, times the price. So ``max_cost`` differs
by model and by resource, and the guard lets a call go out only if both budgets cover it. Tokens and dollars are known
when the answer is complete, some requests later, and the grade comes later still.

"Large" is expensive in dollars, "reasoning" in tokens: the best mix uses both, and no single budget would find it. For
comparison the same pacer runs with the dollar budget alone; the provider then has to say no. The numbers are made up.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import drawing
import numpy as np
from later import Post

import paceline as pl

REQUESTS = 20_000
DOLLARS, TOKENS = 0.004, 1_000.0  # a request, on average
BUCKET = 60_000.0  # tokens


@dataclass(frozen=True)
class Model:
    """What nobody knows beforehand, but for the price and the limit."""

    price: float  # dollars for 1,000 tokens
    tokens: float  # of a call, on average
    limit: float  # of tokens
    grade: float  # on average
    colour: str


MODELS = {
    "small": Model(price=0.0005, tokens=400, limit=1_500, grade=0.50, colour=drawing.SKY),
    "medium": Model(price=0.003, tokens=600, limit=2_500, grade=0.70, colour=drawing.GREEN),
    "large": Model(price=0.012, tokens=700, limit=3_000, grade=0.88, colour=drawing.BLUE),
    "reasoning": Model(price=0.002, tokens=2_200, limit=8_000, grade=0.92, colour=drawing.ORANGE),
}


@dataclass
class Day:
    """What a gateway has made of the requests."""

    sent: list[str | None] = field(default_factory=list)
    dollars: list[float] = field(default_factory=list)  # spent so far, after each request
    bucket: list[float] = field(default_factory=list)  # tokens in the provider's bucket, after each request
    grades: float = 0.0
    refused: int = 0  # calls that the provider answered with error 429


def run(policy: str, both_budgets: bool) -> Day:
    """A day with the live bandit."""
    rng = np.random.default_rng(0)  # every day meets the same requests
    shares = {
        name: rng.beta(8 * m.tokens / m.limit, 8 * (1 - m.tokens / m.limit), REQUESTS) for name, m in MODELS.items()
    }
    grades = {name: rng.beta(2 * m.grade, 2 * (1 - m.grade), REQUESTS) for name, m in MODELS.items()}
    delays = rng.exponential((4.0, 40.0), (REQUESTS, 2))  # of the answer, and of the grade after it
    most_dollars = {name: model.price * model.limit / 1000 for name, model in MODELS.items()}
    most_tokens = {name: model.limit for name, model in MODELS.items()}
    bandit = pl.Bandit(
        list(MODELS),
        budget={"dollars": DOLLARS, "tokens": TOKENS} if both_budgets else {"dollars": DOLLARS},
        max_cost={"dollars": most_dollars, "tokens": most_tokens} if both_budgets else {"dollars": most_dollars},
        cap={"tokens": BUCKET} if both_budgets else None,
        policy=policy,
        seed=1,
    )
    day, post, bucket, spent = Day(), Post(), 0.0, 0.0
    for request in range(REQUESTS):
        post.deliver(bandit, until=request)
        bucket = min(bucket + TOKENS, BUCKET)
        decision = bandit.ask()
        name = decision.arm
        if name is not None and most_tokens[name] > bucket:  # never with both budgets
            day.refused += 1
            bandit.cancel(decision.id)
            name = None
        if name is not None:
            tokens = MODELS[name].limit * shares[name][request]
            dollars = MODELS[name].price * tokens / 1000
            bucket -= tokens
            spent += dollars
            day.grades += grades[name][request]
            cost = {"dollars": dollars, "tokens": tokens} if both_budgets else {"dollars": dollars}
            answer, grade = delays[request]
            post.send(answer, decision.id, cost=cost)
            post.send(answer + grade, decision.id, reward=grades[name][request])
        assert all(bandit.spent[key] + bandit.reserved[key] <= bandit.credited[key] for key in bandit.spent)
        day.sent.append(name)
        day.dollars.append(spent)
        day.bucket.append(bucket)
    return day


def draw(day: Day, path: Path) -> None:
    """Where the requests go, and both budgets."""
    requests = np.arange(1, REQUESTS + 1)
    with drawing.picture(path, 5.6, "Two budgets, one pacer: neither line is ever crossed") as figure:
        models, dollars, bucket = figure.subplots(3, 1, height_ratios=(3, 2, 2))
        colours = {name: model.colour for name, model in MODELS.items()}
        drawing.stack(models, requests, day.sent, colours, np.linspace(0, REQUESTS, 81))
        models.set(ylabel="requests of 250")
        drawing.legend_right(models)
        slack = DOLLARS * requests - np.array(day.dollars)
        dollars.plot(requests, slack, color=drawing.BLACK, linewidth=0.8)
        dollars.set(ylabel="dollars below\nthe line", ylim=0, xlim=(0, REQUESTS), xlabel="request")
        last = slice(REQUESTS - 600, REQUESTS)
        bucket.plot(requests[last], np.array(day.bucket[last]) / 1000, color=drawing.BLACK, linewidth=0.8)
        bucket.axhline(BUCKET / 1000, color=drawing.RED, linestyle=":", label="full")
        bucket.set(ylabel="thousand tokens\nin the bucket", ylim=0, xlabel="request (the last ten minutes)")
        bucket.set_xlim(requests[last][0], requests[last][-1])
        drawing.legend_right(bucket)


def main() -> None:
    """Play all days, report, draw."""
    out = drawing.folder(__doc__)
    days = {
        "index, both budgets": run("index", True),
        "uniform, both budgets": run("uniform", True),
        "index, dollars alone": run("index", False),
    }
    print(f"{REQUESTS:,} requests, {DOLLARS:g} dollars and {TOKENS:g} tokens each")
    for name, day in days.items():
        sent = Counter(model or "none" for model in day.sent)
        print(f"{name}: mean grade {day.grades / REQUESTS:.3f}, refused by the provider {day.refused:,}")
        print("  sent to:", ", ".join(f"{model} {sent[model]:,}" for model in (*MODELS, "none")))
        print(f"  {day.dollars[-1]:.2f} of {DOLLARS * REQUESTS:.2f} dollars spent, least tokens {min(day.bucket):,.0f}")
    print("promise kept after every request, in dollars and tokens: spent + reserved <= credited")
    draw(days["index, both budgets"], out / "example-llm-gateway.png")


if __name__ == "__main__":
    main()
