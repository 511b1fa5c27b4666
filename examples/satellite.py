"""Plan the tasks of a satellite on solar power
============================================

Nothing comes in during the eclipse, and the computer restarts once.

The satellite circles the Earth in 95 minutes, 60 of them in sunlight, where its panels bring 1,800 joules a minute more
than it needs to live. Every minute there is a target below, and one task can be done.

- Cost, in joules: the energy of the task. It varies, but never exceeds a limit known from tests on the ground, the
  ``max_cost`` of the task. The battery must never run flat: a task begins only if the battery covers its limit.
- Reward, in points from 0 to 1: what the scientists give for the data. Clouds spoil many pictures; radar sees through.

There is no budget per round: all energy comes by the clock (``hourly``), up to the capacity of the battery (``cap``).
At dusk and at sunrise `Bandit.set` changes what comes in. A pacer takes headroom for leave to spend, and little is left
at dusk. With ``period``, an orbit, the bandit learns in the first orbit when energy comes, and from then on it keeps
some sunlight for the night.

Every event goes to a journal. Half-way, in the eclipse and in the middle of a task, the computer loses power, and half
a line is left at the end of the journal. `Bandit.open` goes on with the same books and the same future: the mission is
compared with one that was never interrupted, decision by decision. The numbers are made up.
"""

import logging
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import drawing
import numpy as np
import numpy.typing as npt

import paceline as pl

ORBIT, SUNLIGHT, ORBITS = 95, 60, 40
MINUTES = ORBITS * ORBIT
RESTART = ORBITS // 2 * ORBIT - 10  # ten minutes before sunrise
POWER = 1_800.0  # joules a minute in sunlight
CAPACITY = 80_000.0  # joules in a full battery


@dataclass(frozen=True)
class Task:
    """What nobody knows beforehand, but for the limit."""

    limit: float  # joules
    energy: float  # joules, on average
    points: float  # on average
    colour: str


TASKS = {
    "beacon": Task(limit=120, energy=80, points=0.05, colour=drawing.SKY),
    "thermal": Task(limit=700, energy=400, points=0.30, colour=drawing.PINK),
    "camera": Task(limit=1_500, energy=900, points=0.50, colour=drawing.BLUE),
    "radar": Task(limit=5_000, energy=3_000, points=0.95, colour=drawing.ORANGE),
}


@dataclass
class Mission:
    """What a plan has made of the minutes."""

    done: list[str | None] = field(default_factory=list)
    battery: list[float] = field(default_factory=list)  # joules at the end of each minute
    points: float = 0.0
    recovered: str | None = None


def run(policy: str, period: float | None, journal: Path, restart: bool = False) -> Mission:
    """The mission with the live bandit."""
    now = 0.0  # seconds

    def clock() -> float:
        return now

    rng = np.random.default_rng(0)  # every mission meets the same minutes
    energy = {name: one.limit * spread(rng, one.energy / one.limit, 8) for name, one in TASKS.items()}
    points = {name: spread(rng, one.points, 2) for name, one in TASKS.items()}
    mission = Mission()
    battery = 0.0  # joules, as its sensor says
    limits = {name: one.limit for name, one in TASKS.items()}
    bandit = pl.Bandit(
        list(TASKS),
        policy=policy,
        max_cost=limits,
        hourly=60 * POWER,
        cap=CAPACITY,
        period=period,
        seed=1,
        journal=journal,
        clock=clock,
    )
    for minute in range(MINUTES):
        if minute % ORBIT in (0, SUNLIGHT):
            bandit.set(hourly=0.0 if minute % ORBIT else 60 * POWER)
        if minute % ORBIT < SUNLIGHT:
            battery = min(battery + POWER, CAPACITY)
        now += 60  # tasks begin at the end of their minute
        mission.done.append(bandit.ask().arm)
        if restart and minute == RESTART:
            bandit = lose_power(bandit, journal, clock)
            mission.recovered = bandit.recovered
        for number, name in bandit.pending.items():  # at most one; after a restart nobody else knows of it
            battery -= energy[name][minute]
            mission.points += points[name][minute]
            bandit.tell(number, reward=points[name][minute], cost=energy[name][minute])
        assert bandit.spent + bandit.reserved <= bandit.credited
        assert 0 <= bandit.headroom <= battery + 1e-6
        mission.battery.append(battery)
    bandit.close()
    return mission


def spread(rng: np.random.Generator, mean: float, tightness: float) -> npt.NDArray[np.float64]:
    """A number between 0 and 1 for every minute."""
    return rng.beta(tightness * mean, tightness * (1 - mean), MINUTES)


def lose_power(bandit: pl.Bandit, journal: Path, clock: Callable[[], float]) -> pl.Bandit:
    """Leave the journal as a loss of power would, in the middle of a line, and begin again."""
    assert bandit.pending, "the restart should come in the middle of a task"
    bandit.close()
    with journal.open("ab") as file:
        file.write(b'3f2a ["tell",18')
    return pl.Bandit.open(journal, clock=clock)


def draw(missions: dict[str, Mission], path: Path) -> None:
    """Four orbits around the restart: the battery, and the tasks of both plans."""
    first = RESTART // ORBIT * ORBIT - ORBIT
    last = first + 4 * ORBIT
    shown = slice(first, last)
    with drawing.picture(
        path, 5.6, "Same sun, same pacer: paced by the orbit, energy lasts through the eclipse"
    ) as figure:
        battery, *plans = figure.subplots(3, 1, sharex=True, height_ratios=(3, 2, 2))
        for dusk in range(first + SUNLIGHT, last, ORBIT):
            eclipse = battery.axvspan(dusk, dusk + ORBIT - SUNLIGHT, color=drawing.PALE, linewidth=0)
        eclipse.set_label("eclipse")
        for (name, mission), colour in zip(missions.items(), (drawing.BLACK, drawing.GREEN), strict=True):
            joules = np.array(mission.battery[shown])
            battery.plot(range(first, last), joules / 1000, color=colour, label=name)
        battery.axvline(RESTART, color=drawing.RED, linestyle=":", label="restart")
        battery.set(ylabel="battery, kilojoules", ylim=0)
        drawing.legend_right(battery)
        colours = {name: one.colour for name, one in TASKS.items()}
        for axes, (name, mission) in zip(plans, missions.items(), strict=True):
            drawing.stack(axes, range(first, last), mission.done[shown], colours, np.arange(first, last + 1.0, 5))
            axes.set(ylabel=f"tasks in 5 min,\n{name}")
        drawing.legend_right(plans[0])
        plans[1].set(xlabel="minutes since the mission began")


def main() -> None:
    """Fly all missions, report, draw."""
    out = drawing.folder(__doc__)
    logging.getLogger("paceline").setLevel(logging.ERROR)  # the warning about the torn line is printed below
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        spent_as_it_comes = run("index", None, place / "as it comes")
        by_the_orbit = run("index", 60 * ORBIT, place / "by the orbit", restart=True)
        undisturbed = run("index", 60 * ORBIT, place / "undisturbed")
        uniform = run("uniform", 60 * ORBIT, place / "uniform")
    missions = {
        "index without a period": spent_as_it_comes,
        "index": by_the_orbit,
        "uniform": uniform,
    }
    print(f"{MINUTES:,} minutes, {ORBITS} orbits")
    for name, mission in missions.items():
        done = Counter(task or "none" for task in mission.done)
        print(f"{name}: {mission.points:.0f} points; lowest battery {min(mission.battery):,.0f} joules")
        print("  done:", ", ".join(f"{task} {done[task]:,}" for task in (*TASKS, "none")))
    assert by_the_orbit.done == undisturbed.done
    assert by_the_orbit.battery == undisturbed.battery
    print(f"restart in minute {RESTART:,}: {(by_the_orbit.recovered or '').partition(': ')[2]}")
    print(f"  all {MINUTES - RESTART:,} decisions from there are those of a mission without a restart")
    print("promise kept after every task: spent + reserved <= credited")
    draw({"without a period": spent_as_it_comes, "paced by the orbit": by_the_orbit}, out / "example-satellite.png")


if __name__ == "__main__":
    main()
