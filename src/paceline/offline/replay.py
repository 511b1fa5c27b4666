"""Run policies over logged outcomes: what they would have done, and earned at each budget rate."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from paceline import checks
from paceline.engine import engine_for
from paceline.errors import InvalidValue
from paceline.offline.data import LogLike, read_log_table
from paceline.offline.logs import Logged, MaxCost, full_log, random_log
from paceline.offline.replays import Replay, Replayed, allowed, rounds_of
from paceline.policies import PoliciesLike, label_policies
from paceline.policies.policy import Policy, Setting
from paceline.simulation.simulate import collect, cores
from paceline.simulation.totals import Totals, new_totals, note, stack_trials


def replay(
    log: LogLike,
    policy: PoliciesLike = "thompson",
    *,
    budget: float | Sequence[float],
    arm: str = "arm",
    reward: str = "reward",
    cost: str = "cost",
    propensity: str | None = None,
    rewards: Mapping[str, str] | None = None,
    costs: Mapping[str, str] | None = None,
    max_cost: MaxCost = 1.0,
    max_reward: float = 1.0,
    repeats: int = 200,
    seed: int = 0,
) -> Replay:
    """Run policies over a table of logged outcomes: a DataFrame, a mapping of columns, or the path of a CSV file.

    **Randomised log.** A row has the arm that was shown, its reward and its cost in the columns ``arm``, ``reward`` and
    ``cost``. When the policy asks for an arm, rows are passed over until one shows it, and that outcome is told; a
    round sat out takes no row. Where arms were not equally likely, the column ``propensity`` has the probability with
    which the arm of the row was drawn, and a row of propensity p is kept with probability  (smallest p) / p.  Without
    it they are taken to be equally likely, and a note says if their shares do not fit. On average one pull takes as
    many rows as there are arms, so the replay of N rows stands for the first N / K rounds with a pull, not for N; it
    never lasts longer than N rounds. The estimate is the mean over ``repeats`` random orders of the rows. (A mean over
    resamples would come out too high where arms are about equally good: in each, the policy finds the luckiest.)

    Conditions: rows are independent and alike in law, and the arm was drawn independently of what each arm would have
    yielded, given the propensity. Then the outcomes told are distributed as they would have been live, and the number
    of pulls says nothing about them (Li, Chu, Langford, Wang, "Unbiased offline evaluation of contextual-bandit-based
    news article recommendation algorithms", WSDM 2011). Only the division by a random number of rounds leaves a bias,
    of the order of 1 / rounds.

    **Full information.** ``rewards`` and ``costs`` map each arm to the columns of its reward and its cost; row t is
    round t. The estimate comes from the log in its own order and is exact for a policy that draws nothing; it assumes
    that the choice of an arm does not change what later rows hold.

    The interval holds the middle 95 % of ``repeats`` replays of rows drawn with replacement, all with decisions of
    their own; all policies and budgets share the draws (Mary, Preux, Nicol, "Improving offline evaluation of contextual
    bandit algorithms via bootstrapping techniques", ICML 2014; they draw K times as many rows to make up for those
    passed over, which would hide how little the log knows). It says where a single replay of another such log would
    end, so it is wide for the mean over many orders. It takes rows as independent: an estimate of a full log outside of
    its interval says that their order matters.

    ``budget`` is money per round in the unit of the costs, or a list of such rates. ``max_cost`` is the largest
    possible cost of a pull, or of each arm by name, and ``max_reward`` the largest reward: the guard lets an arm be
    pulled when the headroom covers its ``max_cost``. A budget above the largest ``max_cost`` never binds and is played
    as if it were just that. Policies that need a horizon are told the number of rows. A bad row is an error that gives
    its number.

    >>> log = {"arm": ["banner", "video"] * 500, "reward": [0, 0, 1, 1] * 250, "cost": [0.1, 0.5] * 500}
    >>> res = replay(log, ["thompson", "uniform"], budget=0.3, repeats=20)
    >>> res["thompson", 0.3].reward.value > res["uniform", 0.3].reward.value
    True
    """
    chosen = label_policies(policy)
    budgets = check_budgets(budget)
    repeats = checks.whole("repeats", repeats, 2)
    seed = checks.seed(seed)
    logged: Logged
    if rewards is None and costs is None:
        logged = random_log(read_log_table(log), arm, reward, cost, propensity, max_cost, max_reward)
    elif propensity is not None:
        raise InvalidValue(
            f"propensity is for logs that know one arm a row, not for rewards and costs, got {propensity!r}"
        )
    else:
        logged = full_log(read_log_table(log), rewards, costs, max_cost, max_reward)
    plays = [Play(label, rate, policy, settings(logged, rate)) for label, policy in chosen.items() for rate in budgets]
    arms = logged.arms()
    orders = 1 if logged.ordered else repeats
    totals = play_everything(logged, plays, orders, repeats, seed)
    replays = {
        (play.label, play.budget): Replayed(
            play.label,
            play.budget,
            *allowed(arms, play.budget),
            logged,
            stack_trials(found[:orders]),
            stack_trials(found[orders:]),
        )
        for play, found in zip(plays, zip(*totals, strict=True), strict=True)
    }
    return Replay(logged.rounds, repeats, seed, arms, logged.notes(), replays)


@dataclass(frozen=True)
class Play:
    """A policy at a budget."""

    label: str
    budget: float  # in the units of the log
    policy: Policy
    setting: Setting

    def totals(self, rows: Logged, seed: int, stream: int) -> Totals:
        """Replay the rows as they stand, with decisions of this stream."""
        state = self.policy.new_state(self.setting, seed, stream)
        engine = engine_for(type(self.policy))  # type: ignore[arg-type]  # mypy takes the class for an object
        rows.play(engine, self.policy.params(self.setting), state)
        totals = new_totals(1, self.setting.arms, self.policy.memory)
        note(totals, 0, state)
        if not rounds_of(totals):
            raise InvalidValue(f"a log must have rows enough for a round of {self.label}, got {rows.rounds}")
        return totals


def play_everything(logged: Logged, plays: Sequence[Play], orders: int, repeats: int, seed: int) -> list[list[Totals]]:
    """The totals of each play in each replay: first so many orders of the rows, then so many resamples."""

    def one(stream: int) -> list[Totals]:
        rows = logged.resample(np.random.default_rng([seed, stream]), again=stream >= orders)
        return [play.totals(rows, seed, stream) for play in plays]

    first = one(0)  # in this thread alone: it compiles
    with ThreadPoolExecutor(max_workers=cores()) as pool:
        rest = collect({"": [pool.submit(one, stream) for stream in range(1, orders + repeats)]})
    return [first, *rest[""]]


def settings(logged: Logged, budget: float) -> Setting:
    """What a policy is told before the first round."""
    rate = min(budget / logged.top, 1.0)
    return Setting(len(logged.names), rate, logged.rounds, max_costs=logged.max_costs.tolist())


def check_budgets(budget: object) -> list[float]:
    """The budgets as a list of different numbers above 0."""
    given = budget if isinstance(budget, Sequence | np.ndarray) and not isinstance(budget, str) else [budget]
    budgets = [checks.real("budget", rate, 0, above_low=True) for rate in given]
    twice = [rate for rate in budgets if budgets.count(rate) > 1]
    if twice:
        raise InvalidValue(f"budgets must differ, got {twice[0]} twice")
    if not budgets:
        raise InvalidValue("budget must be a number or a list of at least one, got none")
    return budgets
