"""Run an adaptive clinical trial on a weekly grant
================================================

Outcomes come months late, and an unsafe treatment is stopped.

Twenty patients a week come to a clinic. Five treatments are on trial; what they cost and how often they succeed is not
known. Each week a grant of 50,000 euros arrives. It is credited over the patients of the week (`Bandit.credit` with
``over``): a pacer takes headroom for leave to spend, and with the whole grant on Monday it can happen that the last
patients of a week have to be referred. The summary says what that would have cost.

- Cost, in euros: the invoice of a treatment, 2 to 6 weeks after it began, never above the ceiling agreed upon with the
  hospital; the ceiling is the ``max_cost``. Until the invoice comes, the ceiling is reserved: over a hundred patients
  are under treatment at once, and all of their invoices could be paid if each reached its ceiling.
- Reward: 1 for a success, 0 otherwise, known 8 to 16 weeks after the treatment began.
- A patient for whom the grant cannot pay a treatment that is worth it is referred to another clinic and counts as no
  success here.

Safety comes first and is no matter of rewards: a treatment is paused (`Bandit.pause`) as soon as its serious adverse
events speak 20 to 1 for a rate of 15 % against one of 5 %. If the rate is 5 %, the chance that this ever happens is at
most 1 in 20 (Wald's sequential test). Invoices and outcomes of its patients are still taken in.

The numbers are made up. The index pacer is compared with a random allocation of the same patients under the same
rule, and with the whole grant released on Mondays.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import drawing
import numpy as np
from later import Post

import paceline as pl

WEEKS = 104
PATIENTS = 20  # a week
GRANT = 50_000.0  # euros a week
TOLERATED, ALARMING = 0.05, 0.15  # rates of serious adverse events
ALARM = math.log(20)


@dataclass(frozen=True)
class Treatment:
    """What nobody knows beforehand, but for the ceiling."""

    ceiling: float  # euros
    cost: float  # euros, on average
    success: float
    adverse: float  # rate of serious adverse events
    colour: str


TREATMENTS = {
    "usual care": Treatment(ceiling=800, cost=400, success=0.30, adverse=0.02, colour=drawing.SKY),
    "tablets": Treatment(ceiling=2_500, cost=1_500, success=0.50, adverse=0.04, colour=drawing.BLUE),
    "infusion": Treatment(ceiling=6_000, cost=3_500, success=0.52, adverse=0.05, colour=drawing.PINK),
    "surgery": Treatment(ceiling=10_000, cost=6_000, success=0.80, adverse=0.05, colour=drawing.ORANGE),
    "combination": Treatment(ceiling=6_000, cost=4_000, success=0.80, adverse=0.20, colour=drawing.RED),
}


@dataclass(frozen=True)
class Patient:
    """A patient, and what would follow whichever treatment is given."""

    invoices: dict[str, float]  # euros
    successes: dict[str, bool]
    adverse: dict[str, bool]
    invoice_delay: float  # weeks
    outcome_delay: float  # weeks


def draw_patients(seed: int) -> list[list[Patient]]:
    """The patients of each week."""
    rng = np.random.default_rng(seed)

    def patient() -> Patient:
        shares = {name: one.cost / one.ceiling for name, one in TREATMENTS.items()}
        return Patient(
            {name: TREATMENTS[name].ceiling * float(rng.beta(6 * s, 6 - 6 * s)) for name, s in shares.items()},
            {name: bool(rng.random() < one.success) for name, one in TREATMENTS.items()},
            {name: bool(rng.random() < one.adverse) for name, one in TREATMENTS.items()},
            float(rng.uniform(2, 6)),
            float(rng.uniform(8, 16)),
        )

    return [[patient() for _ in range(PATIENTS)] for _ in range(WEEKS)]


@dataclass
class Safety:
    """Wald's sequential test for every treatment: log likelihood of the alarming rate over the tolerated one."""

    evidence: dict[str, float] = field(default_factory=lambda: dict.fromkeys(TREATMENTS, 0.0))

    def alarmed(self, treatment: str, adverse: bool) -> bool:
        """Take in one more patient; says whether the treatment must be stopped."""
        if adverse:
            self.evidence[treatment] += math.log(ALARMING / TOLERATED)
        else:
            self.evidence[treatment] += math.log((1 - ALARMING) / (1 - TOLERATED))
        return self.evidence[treatment] >= ALARM


@dataclass
class Trial:
    """What a policy has made of the patients."""

    given: list[str | None] = field(default_factory=list)
    successes: int = 0
    adverse: int = 0
    paused: dict[str, int] = field(default_factory=dict)  # in which week
    most_open: int = 0  # patients whose invoice or outcome is still to come
    books: list[tuple[float, float, float]] = field(default_factory=list)  # euros: spent, reserved, credited


def run(policy: str, patients: list[list[Patient]], over: int = PATIENTS) -> Trial:
    """The trial with the live bandit; the grant of a week is credited over so many patients, or at once."""
    ceilings = {name: one.ceiling for name, one in TREATMENTS.items()}
    bandit = pl.Bandit(list(TREATMENTS), policy=policy, max_cost=ceilings, seed=1)
    post, safety, trial = Post(), Safety(), Trial()  # the post counts in weeks
    for week, arrivals in enumerate(patients):
        post.deliver(bandit, week)
        bandit.credit(GRANT, over)
        for patient in arrivals:
            decision = bandit.ask()
            arm = decision.arm
            trial.given.append(arm)
            if arm is None:
                continue
            post.send(patient.invoice_delay, decision.id, cost=patient.invoices[arm])
            post.send(patient.outcome_delay, decision.id, reward=float(patient.successes[arm]))
            trial.successes += patient.successes[arm]
            trial.adverse += patient.adverse[arm]
            if safety.alarmed(arm, patient.adverse[arm]) and arm not in trial.paused:
                bandit.pause(arm)
                trial.paused[arm] = week
            assert bandit.spent + bandit.reserved <= bandit.credited
        trial.most_open = max(trial.most_open, len(bandit.pending))
        trial.books.append((bandit.spent, bandit.reserved, bandit.credited))
    return trial


def draw(trial: Trial, path: Path) -> None:
    """Treatments above, the grant below."""
    with drawing.picture(path, 4.8, "Invoices come weeks late, and the grant is never overdrawn") as figure:
        mix, grant = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        weeks = np.arange(WEEKS)
        colours = {name: one.colour for name, one in TREATMENTS.items()}
        drawing.stack(mix, np.repeat(weeks, PATIENTS), trial.given, colours, np.arange(0.0, WEEKS + 1, 4))
        mix.set(ylabel="patients in four weeks", ylim=(0, 92))
        drawing.legend_right(mix)
        spent, reserved, credited = np.array(trial.books).T / 1e6
        grant.fill_between(weeks, spent, color=drawing.GREY, linewidth=0, label="spent")
        grant.fill_between(weeks, spent, spent + reserved, color=drawing.PALE, linewidth=0, label="reserved")
        grant.plot(weeks, credited, color=drawing.BLACK, label="credited")
        grant.set(xlabel="weeks since the trial began", ylabel="million euros", ylim=0)
        drawing.legend_right(grant)
        for name, week in trial.paused.items():
            for axes in (mix, grant):
                axes.axvline(week, color=drawing.BLACK, linewidth=1, linestyle=":")
            mix.annotate(
                f"{name} is paused",
                (week, 1),
                xycoords=("data", "axes fraction"),
                xytext=(4, -9),
                textcoords="offset points",
            )


def main() -> None:
    """Run both trials, report, draw."""
    out = drawing.folder(__doc__)
    patients = draw_patients(seed=0)
    trials = {
        "index": run("index", patients),
        "uniform": run("uniform", patients),
        "index, grant on Mondays": run("index", patients, over=0),
    }
    print(f"{WEEKS * PATIENTS:,} patients in {WEEKS} weeks, {GRANT * WEEKS:,.0f} euros granted")
    for policy, trial in trials.items():
        given = Counter(name or "referred" for name in trial.given)
        spent, reserved, _ = trial.books[-1]
        paused = ", ".join(f"{name} in week {week}" for name, week in trial.paused.items()) or "nothing"
        print(f"{policy}: {trial.successes:,} successes, {trial.adverse} serious adverse events; paused: {paused}")
        print("  treated:", ", ".join(f"{name} {given[name]:,}" for name in (*TREATMENTS, "referred")))
        print(
            f"  {spent:,.0f} euros spent and {reserved:,.0f} reserved; at most {trial.most_open} patients open at once"
        )
    print("promise kept after every patient: spent + reserved <= credited")
    draw(trials["index"], out / "example-clinical-trial.png")


if __name__ == "__main__":
    main()
