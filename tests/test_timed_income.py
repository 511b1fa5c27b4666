"""Income by the clock is exact and never minted twice, and the pace by the period serves the evening."""

from collections import Counter
from fractions import Fraction
from random import Random

import pytest

from paceline import Bandit
from paceline.live.timetable import BINS, Count, Timetable

DAY = 86_400.0
SEEDS = range(4)


class Clock:
    """Seconds, in eighths: exact as floats and in milliseconds."""

    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


class Stock:
    """What should be in stock, in fractions: time that runs backwards brings nothing, and the cap is the end."""

    def __init__(self, hourly, cap):
        self.hourly, self.cap = Fraction(hourly), Fraction(cap)
        self.amount = self.came = Fraction(0)
        self.latest = None

    def go_to(self, time):
        time = Fraction(time)
        if self.latest is not None and time > self.latest:
            income = self.hourly * (time - self.latest) / 3600
            self.came += income
            self.amount = min(self.amount + income, self.cap)
        self.latest = time if self.latest is None else max(time, self.latest)


def jump(random):
    """Seconds until the next call: mostly a little, sometimes a long gap, sometimes back."""
    return random.choice([0.0, 0.125, 1.0, 7.5, 60.0, 3600.0, -5.0, -7200.0, 5 * DAY, 0.25, 0.375]) * random.choice(
        [1, 3]
    )


@pytest.mark.parametrize("period", [None, 600.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_income_is_that_of_an_exact_model(seed, period):
    random, clock = Random(seed), Clock()
    hourly, cap = random.choice([(1.0, 2.0), (0.1, 1.5), (700.0, 3.25), (1e7, 1e6)])
    bandit = Bandit(["a", "b"], hourly=hourly, cap=cap, period=period, clock=clock, seed=seed)
    model, unit, rounds, pulls = Stock(hourly, cap), Fraction(1, 2**32), 0, 0
    for _ in range(300):
        clock.now += jump(random)
        if random.random() < 0.1:
            hourly = random.choice([0.0, 0.3, 1 / 3, 11.0, 1e5])
            bandit.set(hourly=hourly)
            if model.latest is not None:
                model.go_to(clock.now)
            model.hourly = Fraction(hourly)
            if model.latest is None and rounds and (hourly or period):
                model.latest = Fraction(clock.now)
        else:
            decision = bandit.ask()
            rounds += 1
            if hourly or period:
                model.go_to(clock.now)
            if decision.arm is not None:
                cost = random.randrange(17) / 16  # no rounding
                bandit.tell(decision.id, random.random(), cost)
                model.amount -= Fraction(cost)
                pulls += 1
        left = Fraction(bandit.headroom)
        assert model.amount - 50 * unit <= left <= model.amount  # each change of the rate may drop a part of a unit
        assert 0 <= left <= model.cap
        assert Fraction(bandit.credited) <= model.came
    assert pulls > 20


def test_a_new_rate_brings_nothing_for_the_time_before():
    clock = Clock()
    bandit = Bandit(["a"], hourly=3600.0, cap=1e6, clock=clock)
    bandit.ask()
    clock.now += 10
    bandit.set(hourly=0.0)
    assert bandit.credited == 10.0
    clock.now += 1000
    bandit.ask()
    bandit.set(hourly=7200.0)
    assert bandit.credited == 10.0
    clock.now += 10
    bandit.ask()
    assert bandit.credited == 30.0


def test_more_than_can_be_counted_comes_in_and_is_lost():
    clock = Clock()
    bandit = Bandit(["a"], hourly=4e9, cap=1e9, clock=clock)
    bandit.ask()
    for hour in range(1, 20):
        clock.now += 3600
        decision = bandit.ask()
        bandit.tell(decision.id, 1.0, 1.0)
        assert bandit.headroom == 1e9 - 1
        assert bandit.credited == 1e9 + hour - 1
        assert bandit.status().lost == 4e9 * hour - bandit.credited


# The plan.


def filled(*bins):
    """A timetable whose bins to come are these: rounds and income; the rest of the period is silent."""
    table = Timetable(DAY)
    table.bins.extend(Count(rounds, (income,)) for rounds, income in bins)
    table.bins.extend([Count(0, (0,))] * (BINS - len(bins)))
    return table


def naive_plan(stock, cap, bins):
    """Spending by bin, in whole units: least is lost, nothing is left, and  sum of  spending^2 / rounds  is least."""
    plans = {stock: (0, Fraction(0), ())}
    for rounds, income in bins:
        found = {}
        for before, (lost, price, spending) in plans.items():
            there = before + income
            for spent in range(there + 1) if rounds else [0]:
                left = min(there - spent, cap)
                worse = Fraction(spent * spent, max(rounds, 1))
                plan = (lost + there - spent - left, price + worse, (*spending, spent))
                found[left] = min(plan, found.get(left, plan))
        plans = found
    return plans[0][2]


@pytest.mark.parametrize("seed", range(30))
def test_the_pace_is_that_of_the_best_plan(seed):
    random = Random(seed)
    bins = [(random.choice([0, 1, 2, 5]), random.choice([0, 0, 6, 12, 20])) for _ in range(4)]
    bins.append((random.randrange(1, 4), random.choice([0, 10])))
    cap = random.choice([15, 25, 1000])
    stock = random.randrange(0, min(cap, 40))
    first = next(place for place, (rounds, _) in enumerate(bins) if rounds)
    planned = naive_plan(stock, cap, bins)[first]
    assert filled(*bins).pace(0, stock, cap) * bins[first][0] == pytest.approx(planned, abs=2.0)  # whole units there


@pytest.mark.parametrize(
    ("stock", "cap", "bins", "pace"),
    [
        (40, 100, [(10, 10), (90, 50)], 1.0),  # the night's stock is for the evening
        (0, 100, [(10, 60), (10, 0)], 3.0),  # sunlight for the eclipse
        (0, 30, [(10, 60), (10, 0)], 3.0),  # as much as the battery holds
        (0, 20, [(10, 60), (10, 0)], 4.0),  # less than that: spend before it runs over
        (50, 100, [(10, 0), (10, 100)], 5.0),  # what comes tomorrow cannot be spent today
        (90, 100, [(0, 60), (10, 0)], 10.0),  # what runs over while nobody asks is lost
    ],
)
def test_the_pace_in_cases_that_can_be_seen(stock, cap, bins, pace):
    assert filled(*bins).pace(0, stock, cap) == pace


def test_a_silent_day_teaches_nothing_and_silent_hours_do():
    table, bin_length = Timetable(BINS * 1.0), 1000
    rounds = income = 0
    for place in range(BINS + 1):
        table.take(Count(rounds, (income,)), place * bin_length)
        rounds, income = rounds + place, income + 7
    assert [each.rounds for each in table.bins] == list(range(BINS))
    income += 7 * (2 * BINS + 4)
    table.take(Count(rounds, (income,)), (BINS + 1 + 2 * BINS + 4) * bin_length)
    # The last bin before the silence replaced the oldest; then 4 more bins are behind us, and two whole periods.
    assert [each.rounds for each in table.bins] == [*range(5, BINS), BINS, 1, 2, 3, 4]
    income += 7 * 6
    table.take(Count(rounds + 9, (income,)), (BINS + 1 + 2 * BINS + 4 + 6) * bin_length)
    assert [each.rounds for each in table.bins] == [*range(11, BINS), BINS, 1, 2, 3, 4, 9, 0, 0, 0, 0, 0]
    assert sum(each.income[0] for each in list(table.bins)[-6:]) == 7 * 6


# The whole.

ARMS = {"cheap": (0.2, 0.1), "good": (0.6, 0.4), "best": (0.9, 1.0)}  # mean reward, cost
NIGHT, EVENING = 3, 36  # rounds an hour
HOURS = [NIGHT] * 16 + [EVENING] * 8
HOURLY = 0.5 * sum(HOURS) / 24


def play_day(bandit, clock, hours=HOURS):
    """The arms of a day, hour by hour."""
    chosen = []
    for rounds in hours:
        for _ in range(rounds):
            clock.now += 3600 / rounds
            decision = bandit.ask()
            chosen.append(decision.arm)
            if decision.arm is not None:
                reward, cost = ARMS[decision.arm]
                bandit.tell(decision.id, reward, cost)
            assert bandit.spent + bandit.reserved <= bandit.credited
    return chosen


def earned(chosen):
    return sum(ARMS[arm][0] for arm in chosen if arm is not None)


def new_bandit(clock, **settings):
    largest = {name: cost for name, (_, cost) in ARMS.items()}
    options = {"hourly": HOURLY, "cap": 24 * HOURLY, "period": DAY, "clock": clock, "seed": 3}
    return Bandit(list(ARMS), policy="thompson", max_cost=largest, **options | settings)


def test_the_evening_is_served():
    best = sum(HOURS) * (0.6 + 0.3 * (0.5 - 0.4) / (1.0 - 0.4))  # the mix of good and best that costs 0.5
    days = {}
    for period in (None, DAY):
        clock = Clock()
        bandit = new_bandit(clock, period=period)
        days[period] = [play_day(bandit, clock) for _ in range(4)]
    without, with_it = (sum(map(earned, days[period][1:])) / 3 for period in (None, DAY))
    assert days[DAY][0] == days[None][0]  # nothing is known yet
    assert without < 0.92 * best
    assert with_it - without > 0.9 * (best - without)
    evening = Counter(days[DAY][-1][-8 * EVENING :])
    assert evening["good"] + evening["best"] > 0.97 * 8 * EVENING


def test_a_battery_that_would_run_over_at_night_is_used_at_night():
    clock = Clock()
    bandit = new_bandit(clock, cap=5 * HOURLY)
    for _ in range(3):
        play_day(bandit, clock)
    lost = bandit.status().lost
    night = Counter(play_day(bandit, clock)[: 16 * NIGHT])
    assert night["best"] > 0.9 * 16 * NIGHT  # the most that a night can spend
    assert bandit.status().lost - lost < 24 * HOURLY


@pytest.mark.parametrize("factor", [0, 0.5, 2])
def test_another_day_than_yesterday_keeps_the_promise_and_is_forgotten(factor):
    clock = Clock()
    bandit, usual = new_bandit(clock), []
    for day in range(6):
        if day == 3:
            if factor == 0:
                clock.now += DAY
            else:
                play_day(bandit, clock, [int(factor * rounds) for rounds in HOURS])
        else:
            usual.append(earned(play_day(bandit, clock)))
    assert usual[-1] > 0.95 * usual[2]


def state(bandit):
    """All that the pace depends on."""
    ledger = bandit._ledger
    books = ledger.arm_set.books
    return ledger.timed.to_dict(), books.pace.tolist(), books.pace_line.tolist(), bandit.headroom, bandit.credited


@pytest.mark.parametrize("way", ["journal", "snapshot", "save"])
def test_a_bandit_that_was_closed_goes_on_at_the_same_pace(way, tmp_path):
    clocks = [Clock(), Clock()]
    bandits = [new_bandit(clock, journal=tmp_path / str(n)) for n, clock in enumerate(clocks)]
    for day in range(3):
        for bandit, clock in zip(bandits, clocks, strict=True):
            play_day(bandit, clock, HOURS[:20])
        stay, restarted = bandits
        if day == 1:
            for bandit in bandits:
                bandit.set(hourly=1.1 * HOURLY)
        if way == "snapshot":
            restarted.snapshot()
        if way == "save":
            restarted.save(tmp_path / "saved")
        restarted.close()
        if way == "save":
            again = Bandit.load(tmp_path / "saved", clock=clocks[1])
        else:
            again = Bandit.open(tmp_path / "1", clock=clocks[1])
        assert state(again) == state(stay)
        assert day == 0 or state(stay)[1][0] > 0.0
        if way == "save":
            again.close()
            again = Bandit.open(tmp_path / "1", clock=clocks[1])
        bandits = [stay, again]
    first, second = (play_day(bandit, clock) for bandit, clock in zip(bandits, clocks, strict=True))
    assert first == second
    for bandit in bandits:
        bandit.close()


def test_the_period_can_be_set_and_taken_back():
    clock = Clock()
    bandit = new_bandit(clock, period=None, budget=0.25, hourly=0.0)
    play_day(bandit, clock)
    bandit.set(period=DAY)
    play_day(bandit, clock)
    assert state(bandit)[1] == [0.0]  # a period has to pass
    play_day(bandit, clock)
    assert state(bandit)[1][0] == pytest.approx(0.25, rel=0.2)
    bandit.set(period=2 * DAY)
    assert state(bandit)[1] == [0.0]
    assert not state(bandit)[0]["timetable"]["bins"]
    bandit.set(period=None)
    assert state(bandit)[0]["timetable"] is None
    assert bandit._ledger.arm_set.state.rate[0] == 0.25
    bandit.ask()
    assert bandit._ledger.arm_set.state.rate[0] == 0.25
