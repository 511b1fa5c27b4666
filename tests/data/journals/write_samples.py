"""Write the sample files of an earlier format, with the sources of the commit that had it.

    mkdir earlier; git archive 060dda9 | tar x -C earlier        (format 1; 5bf1f00 for format 2)
    PYTHONPATH=earlier/src python tests/data/journals/write_samples.py

For each sample there is a journal with a torn last line, the snapshot beside it, the bandit as it was saved, and what
the earlier version reported of it.
"""

import json
import random
from pathlib import Path

from paceline import Bandit
from paceline.live import recovery

NOW = 1_700_000_000.0
FOLDER = Path(__file__).parent
MAX_COST = {"a": 2.0, "b": 0.5, "c": 1.0}
SETTINGS = {
    "arms": ["a", "b", "c"],
    "budget": 0.9,
    "max_cost": MAX_COST,
    "scale": 4.0,
    "max_reward": 3.0,
    "seed": 5,
    "expires": 50.0,
    "silence": 0.25,
    "remember": 12,
}
TWO = {
    "budget": {"money": 0.9, "calls": 0.6},
    "max_cost": {"money": MAX_COST, "calls": 1.0},
    "scale": {"money": 4.0, "calls": 1.0},
    "start": {"money": 3.0, "calls": 0.0},
    "cap": {"money": 6.0, "calls": 5.0},
}
SAMPLES = {
    1: {
        "thompson": {"policy": "thompson"},
        "suak": {"policy": "suak", "silence": None},
        "ucb-simplex": {"policy": "ucb-simplex"},
    },
    2: {
        "index": {"policy": "index"},
        "thompson": {"policy": "thompson", **TWO},
        "own": {"policy": f"{FOLDER / 'moody.py'}:Moody", "max_refill": 0.3},
    },
}


class Life:
    """What happens to a bandit: late news, half of it, none of it, income, arms that come and go."""

    def __init__(self, bandit, names):
        self.bandit, self.names = bandit, names
        self.dice, self.waiting = random.Random(3), []

    def amounts(self, money, calls):
        return {"money": money, "calls": calls} if self.names else money

    def ask(self):
        try:
            decision = self.bandit.ask(expires=self.dice.choice([None, None, 7.5]))
        except RuntimeError:
            return
        if decision.arm is not None:
            self.waiting.append(decision)

    def news(self):
        dice = self.dice
        if not self.waiting:
            return
        decision = self.waiting.pop(dice.randrange(len(self.waiting)))
        bandit, id = self.bandit, decision.id
        if id not in bandit.pending:
            return
        largest = {**MAX_COST, "d": 3.0}[decision.arm]
        reward = 3.0 * dice.random()
        cost = self.amounts(dice.choice([0.0, 0.1, 0.3, 0.7]) * largest, dice.random() * 0.7)
        kind = dice.randrange(12)
        if kind == 0:
            bandit.cancel(id)
        elif kind == 1:
            bandit.expire(id)
        elif kind == 2:
            bandit.expire(id)
            bandit.tell(id, cost=cost)
        elif kind == 3:
            bandit.tell(id, cost=cost)
        elif kind == 4:
            bandit.tell(id, reward=reward)
        elif kind == 5 and id not in bandit.expired:
            bandit.tell(id, cost={"calls": cost["calls"]} if self.names else cost)
            bandit.tell(id, reward, cost)
        else:
            bandit.tell(id, reward, cost)

    def pass_by(self, clock):
        """Some hundred events."""
        bandit = self.bandit
        for step in range(260):
            clock[0] += 1.0
            self.ask()
            if self.dice.random() < 0.8:
                self.news()
            if step == 40:
                bandit.credit(self.amounts(2.5, 1.5))
            elif step == 60:
                bandit.credit(self.amounts(3.3, 2.0), 40)
            elif step == 90:
                bandit.pause("b")
            elif step == 120:
                bandit.add("d", self.amounts(3.0, 0.7))
            elif step == 150:
                bandit.resume("b")
            elif step == 200:
                bandit.retire("c")
            elif step == 240:
                bandit.credit({"money": 0.7} if self.names else 0.7, 30)


def report(bandit):
    """What can be seen."""
    names = ("rounds", "spent", "reserved", "credited", "held", "headroom", "earned", "pending", "expired", "arms")
    return {**{name: getattr(bandit, name) for name in names}, "estimates": bandit.estimates()}


for name, options in SAMPLES[recovery.FORMAT].items():
    clock = [NOW]
    journal, saved, reported = (FOLDER / f"{recovery.FORMAT}-{name}.{kind}" for kind in ("journal", "saved", "json"))
    journal.unlink(missing_ok=True)
    bandit = Bandit(**{**SETTINGS, **options}, journal=journal, clock=lambda clock=clock: clock[0])
    Life(bandit, "start" in options).pass_by(clock)
    bandit.snapshot()
    bandit.save(saved)
    bandit.close()
    reported.write_text(json.dumps({"time": clock[0], **report(bandit)}, indent=1) + "\n")
    with journal.open("ab") as file:
        file.write(b'0badc0de ["ask",0,1')  # a crash in the middle of a line
