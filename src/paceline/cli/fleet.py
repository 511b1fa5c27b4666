"""``paceline fleet``: many processes under one budget, played through with everything that can go wrong."""

import argparse

from paceline.errors import InvalidValue

SUMMARY = "play stories of a fleet with faults, and check its books"
DESCRIPTION = """\
Play stories of a fleet: workers and a store whose messages are lost, doubled and overtaken, with kills, mistaken
closes, clocks that jump by an hour, credits, costs above what was reserved and closing workers. After every step exact
books of the truth are compared with what has come in. The same seed gives the same stories. The exit code is 1 if
something is wrong.

  paceline fleet simulate --stories 100000 --seed 1
  paceline fleet simulate --forgets                    a store that forgets what it has acknowledged
  paceline fleet simulate --plant late-debit           with a bug in it, which must be found
"""
BUGS = (
    "late-debit",
    "grants-as-increments",
    "reclaim-from-report",
    "unchecked-pool",
    "sums-as-increments",
    "forgotten-debt",
    "forgiven-debt",
)
SHOWN = 5  # stories in which something is wrong


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("what", choices=["simulate"], help="play stories")
    parser.add_argument("--stories", type=int, default=10_000, metavar="N", help="how many (default: 10000)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the stories (default: 1)")
    parser.add_argument("--fault-free", action="store_true", help="nothing goes wrong")
    parser.add_argument("--forgets", action="store_true", help="the store loses commits that it had acknowledged")
    parser.add_argument("--plant", choices=BUGS, metavar="BUG", help=f"with a bug: {', '.join(BUGS)}")


def run(options: argparse.Namespace) -> int:
    """Play, and say how it went."""
    import time

    from paceline import checks
    from paceline.fleet.planted import BUGS as PLANTED
    from paceline.fleet.planted import Rules
    from paceline.fleet.stories import play_stories

    count = checks.whole("stories", options.stories, 1)
    seed = checks.seed(options.seed)
    if options.fault_free and options.forgets:
        raise InvalidValue("forgets must not be given with fault-free: to forget is a fault")
    rules = PLANTED[options.plant] if options.plant else Rules()
    began = time.monotonic()
    verdicts = play_stories(range(count), seed, rules, faults=not options.fault_free, forgets=options.forgets)
    took = time.monotonic() - began
    broken = [verdict for verdict in verdicts if verdict.problem]
    steps = sum(verdict.steps for verdict in verdicts)
    print(f"{count} stories of seed {seed}, {steps} steps, in {took:.0f} seconds")
    if options.forgets:
        granted = [verdict for verdict in verdicts if verdict.draws]
        wrong = sum(1 for verdict in granted if verdict.problem)
        print(f"with money from the pool: {wrong} of {len(granted)} overdrawn")
        broken = [verdict for verdict in broken if not verdict.draws]
        print(f"with minted money alone: {len(broken)} of {count - len(granted)} overdrawn")
    else:
        print(f"wrong: {len(broken)}")
    for verdict in broken[:SHOWN]:
        print(f"  story {verdict.number}, {verdict.problem}")
    return 1 if broken else 0
