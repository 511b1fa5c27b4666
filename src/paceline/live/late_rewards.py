"""Rewards that come late or never: mean rewards corrected for delay, and numbers that can be trusted.

A click comes minutes after the advertisement was shown, or never; when the window of `expires` is over, `silence`
stands for the reward. Who learns clicks when they come and silences when the window is over learns from too many
clicks. Here every pull counts from the moment it is made, as the share of a trial that its age is worth.

**Learning.** Let s be the silence, F(a) the share of all clicks that have come by age a, and S the sum of  r - s  over
the clicks so far. The effective number of trials is  E = sum of F(age)  over all pulls, 1 for those older than the
window, and the mean reward is  s + S / E,  which is unbiased for the true F (Vernade, Cappe, Perchet, "Stochastic
bandit models for delayed conversions", UAI 2017). F is estimated from the clicks. A delay is seen only if it is shorter
than its pull is old, so delays are truncated on the right, and F is the product-limit estimate for such data, from the
end of the window backwards (Lynden-Bell, "A method of allowing for known observational selection in small samples",
MNRAS 1971). With the window cut into B cells of time, and j the cells between pull and click,

    F[B] = 1,   F[j-1] = F[j] (1 - h[j]),   h[j] = (d[j] + 5 H[j]) / (R[j] + 5),

with d[j] the clicks of an arm after j cells, R[j] those after at most j of pulls that have been there, and
H[j] = sum d / (sum R + 1)  over all arms. Before the first click F is 1: every pull is a trial.

**Reporting.** What is told to people comes from pulls older than the window alone: a click and a silence are then
counted at the same age. In the order of asking these pulls come first, whatever they have brought, so that intervals
which hold at all times hold here. They are counted by the cell: a pull is reported at most one cell after its window is
over.

Everything follows from the times and the order of the events. Rewards are on the scale of the policy, in [0, 1].
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.kernels.estimates import NUMBER, SQUARES, TOTAL, Known
from paceline.live.pulls import Pull
from paceline.policies.policy import Policy, renew_nothing

Floats = npt.NDArray[np.float64]

CELLS = 25  # of a window, B
RING = CELLS + 1  # cells in which a pull can have been made whose window is open, and the one that has just begun
STRENGTH = 5.0  # clicks that the delays of all arms count for in those of one
GRAIN = 2.0**20  # trials are counted in parts of this: sums of them are exact, so what is put in can be taken out
BY_CELL = ("asked", "fresh", "clicks", "gains", "squares")  # (K, RING), by the cell of the pull
BY_DISTANCE = ("seen", "exposed", "weights")  # (K, RING), by the cells since


def can_correct(policy: Policy) -> bool:
    """Whether beliefs of a policy follow from the estimates, so that these may be corrected."""
    return policy.adds_up or policy.renew is not renew_nothing


class Ended(NamedTuple):
    """A window that has ended because settings have changed.

    Of its pulls that were open then, clicks were told and silences not: to be fair to both, no more is learned of the
    rewards of any. There may be very many of them, so each is marked when it is met the next time.
    """

    since: int  # the last decision before
    until: int
    window: int

    def last(self) -> int:
        """The last decision in it."""
        return self.until

    def has(self, number: int, pull: Pull) -> bool:
        """Whether a pull was open in it when it ended; one that expires later is met then, and marked."""
        return number <= self.until and is_in_window(number, pull, self.since, self.window)


def is_in_window(number: int, pull: Pull, since: int, window: int) -> bool:
    """Whether a pull was made after a decision, with that window, and has not expired."""
    is_usual = number > since and pull.deadline == pull.asked + window
    return is_usual and not (pull.told is not None and pull.told.expired)


class LateRewards:
    """The pulls whose windows are open, by arm and by the cell of time in which they were made, and all before them."""

    def __init__(self, window: int, silence: float, arms: int, since: int) -> None:
        self.window, self.silence = window, silence  # milliseconds; on the scale of the policy
        self.since = since  # the last decision before
        self.cell: int | None = None  # the present one; none before the first event
        none = np.zeros((arms, RING))
        self.asked = none.copy()  # pulls
        self.fresh, self.clicks = none.copy(), none.copy()  # clicks in the present cell, and before it
        self.gains, self.squares = none.copy(), none.copy()  # sums of  r - s  and of  r^2 - s^2
        self.seen, self.exposed = none.copy(), none.copy()  # d and R
        self.weights = no_weights(arms)  # what a pull is worth, in trials
        self.trials = np.zeros(arms)  # E
        self.told = np.zeros((3, arms))  # clicks, S and the sum of  r^2 - s^2,  of all pulls
        self.aged = np.zeros((3, arms))  # number, sum and squares of the rewards that are reported
        self.known = np.zeros((3, arms))  # what the estimates have of it

    def add_arm(self) -> None:
        """Room for a new arm."""
        for name in BY_CELL + BY_DISTANCE:
            row = no_weights(1) if name == "weights" else np.zeros((1, RING))
            setattr(self, name, np.concatenate([getattr(self, name), row]))
        self.trials = np.append(self.trials, 0.0)
        for name in ("told", "aged", "known"):
            setattr(self, name, np.pad(getattr(self, name), ((0, 0), (0, 1))))

    # Time.

    def cell_of(self, time: int) -> int:
        """The cell of a time."""
        return time * CELLS // self.window

    def advance(self, time: int) -> list[int]:
        """Let time pass; gives the arms of which the trials are worth more now, if a cell has ended."""
        now = self.cell_of(time)
        if self.cell is None:
            self.cell = now
        if now <= self.cell:  # a clock that was set back changes nothing
            return []
        waiting = np.flatnonzero((self.asked + self.clicks + self.fresh).any(axis=1))
        for _ in range(min(now - self.cell, RING)):  # after that nothing is left in the ring
            self.end_cell(waiting)
        self.cell = now
        self.weigh(waiting)
        found: list[int] = waiting.tolist()
        return found

    def end_cell(self, waiting: Any) -> None:
        """Count the clicks by the cells that they took, and report the pulls whose windows have closed."""
        assert self.cell is not None
        rows = (self.cell - np.arange(RING)) % RING
        places = waiting[:, None], rows
        fresh = self.fresh[places]
        so_far = self.clicks[places] + fresh
        self.clicks[places], self.fresh[places] = so_far, 0.0
        self.seen[waiting] += fresh
        self.exposed[waiting] += so_far
        self.cell += 1
        closed = self.cell % RING
        count = self.asked[waiting, closed]
        self.aged[NUMBER, waiting] += count
        self.aged[TOTAL, waiting] += count * self.silence + self.gains[waiting, closed]
        self.aged[SQUARES, waiting] += count * self.silence**2 + self.squares[waiting, closed]
        for name in BY_CELL:
            getattr(self, name)[waiting, closed] = 0.0

    def weigh(self, waiting: Any) -> None:
        """The share of clicks that has come by each age, for arms that wait for some, and their trials."""
        assert self.cell is not None
        common = self.seen.sum(axis=0) / (self.exposed.sum(axis=0) + 1.0)
        hazards = (self.seen[waiting] + STRENGTH * common) / (self.exposed[waiting] + STRENGTH)
        come = np.ones((waiting.size, RING))  # F
        come[:, :CELLS] = np.cumprod(1.0 - hazards[:, :0:-1], axis=1)[:, ::-1]
        before = np.concatenate([np.zeros((waiting.size, 1)), come[:, :CELLS]], axis=1)
        weights = 0.5 * (before + come)
        self.weights[waiting] = weights
        counts = self.asked[waiting][:, (self.cell - np.arange(RING)) % RING]
        made = self.aged[NUMBER, waiting] + counts.sum(axis=1)
        self.trials[waiting] = made - (counts * (1.0 - weights)).sum(axis=1)

    # Pulls.

    def has(self, number: int, pull: Pull) -> bool:
        """Whether a pull is counted here: made since, with the usual window, and not taken out."""
        return is_in_window(number, pull, self.since, self.window)

    def age_of(self, pull: Pull) -> int:
        """Cells since a pull was made; a clock that was set back makes it older than it is."""
        assert self.cell is not None
        return self.cell - self.cell_of(pull.asked)

    def count(self, pull: Pull, sign: float = 1.0) -> None:
        """One more pull; with the sign -1 it is taken out again."""
        slot, age = pull.slot, self.age_of(pull)
        if age <= CELLS:
            self.asked[slot, (self.cell_of(pull.asked)) % RING] += sign
            self.trials[slot] += sign * self.weights[slot, age]
        else:
            self.aged[:, slot] += [sign, sign * self.silence, sign * self.silence**2]
            self.trials[slot] += sign

    def take_in(self, pull: Pull, reward: float, sign: float = 1.0) -> None:
        """The reward of a pull; with the sign -1 it is taken out again."""
        slot, row, silence = pull.slot, self.cell_of(pull.asked) % RING, self.silence
        is_click = 1.0 if reward != silence else 0.0
        gain, more = sign * (reward - silence), sign * (reward * reward - silence * silence)
        self.told[:, slot] += [sign * is_click, gain, more]
        if self.age_of(pull) <= CELLS:
            self.gains[slot, row] += gain
            self.squares[slot, row] += more
            if sign > 0.0:  # how long it took stays known
                self.fresh[slot, row] += is_click
        else:
            self.aged[TOTAL, slot] += gain
            self.aged[SQUARES, slot] += more

    def take_out(self, pull: Pull, reward: float | None) -> None:
        """Forget a pull that was never acted on, or of which something is missing."""
        if reward is not None:
            self.take_in(pull, reward, -1.0)
        self.count(pull, -1.0)

    # What is known.

    def renewed(self, slot: int) -> Floats:
        """What the estimates have to be told: the change in number, sum and squares of the known rewards of an arm.

        There are at least as many trials as clicks.
        """
        clicks, gain, more = self.told[:, slot].tolist()
        trials = round(max(float(self.trials[slot]), clicks) * GRAIN) / GRAIN
        now = np.array([trials, self.silence * trials + gain, self.silence**2 * trials + more])
        change: Floats = now - self.known[:, slot]
        self.known[:, slot] = now
        return change

    def only_aged(self, slot: int) -> Floats:
        """The same for an end of it: what stays is what is reported."""
        change: Floats = self.aged[:, slot] - self.known[:, slot]
        return change

    def reported(self, known: Known, slot: int) -> Known:
        """The rewards of an arm that may be reported, given all that the estimates have."""
        number, total, squares = (np.array(known) - self.known[:, slot] + self.aged[:, slot]).tolist()
        return Known(number, total, squares) if number > 0.0 else Known(0.0, 0.0, 0.0)

    # Files.

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        arrays = (*BY_CELL, *BY_DISTANCE, "trials", "told", "aged", "known")
        return {"since": self.since, "cell": self.cell, **{name: getattr(self, name).tolist() for name in arrays}}

    def restore(self, saved: dict[str, Any]) -> None:
        """The way back from `to_dict`."""
        for name, value in saved.items():
            setattr(self, name, np.array(value, np.float64) if isinstance(value, list) else value)


def no_weights(arms: int) -> Floats:
    """What pulls are worth before the first click: half a trial in their first cell, then a whole one."""
    weights = np.ones((arms, RING))
    weights[:, 0] = 0.5
    return weights
