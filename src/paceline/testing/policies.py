"""Does a policy keep the rules of the form? Played simulated, live, saved half way, and without the compiler."""

import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Set
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from paceline.errors import InvalidPolicy, PacelineError, in_one_line
from paceline.game import prepare
from paceline.grafting import graft_templates
from paceline.kernels.budget import UNITS
from paceline.kernels.jit import kernel, plain, plain_throughout
from paceline.kernels.state import State, Storage, books_in
from paceline.live.bandit import Bandit
from paceline.policies import PolicyLike, label_policies
from paceline.policies.policy import Policy, Setting, renew_nothing
from paceline.policies.python_policy import PythonPolicy, described
from paceline.policies.rules import check_class
from paceline.problems.problem import Problem
from paceline.problems.resources import without_name
from paceline.simulation.simulate import setting_of
from paceline.worlds.stationary import world_of

ROUNDS = 400
SEED = 20_260_101
ONE = Problem.beta([0.45, 0.7, 0.8], [0.3, 0.75, 0.8], budget=0.5)
OWN_LIMITS = Problem.beta([0.3, 0.8, 0.5], [0.1, 0.6, 0.3], budget=0.3, max_costs=[0.2, 1.0, 0.5])
TWO = Problem.beta(
    [0.45, 0.7, 0.8, 0.3],
    {"money": [0.3, 0.75, 0.8, 0.1], "energy": [0.2, 0.1, 0.6, 0.3]},
    budget={"money": 0.5, "energy": 0.25},
)

Choices = list[int]  # the arm of every round; below 0 or beyond the last for none


def check_policy(policy: PolicyLike, problem: Problem | None = None, *, progress: bool = False) -> None:
    """Raise `InvalidPolicy`, with one line per broken rule, unless the policy keeps the rules of the form.

    It must be made of functions of the right form that compile, choose arms and reasons that exist, draw random numbers
    from (seed, stream, counter) or ``setting.generator()`` alone, and change nothing but scratch when it chooses. It
    must then decide the same way each time: simulated again, live, live and saved half way, and with plain Python in
    place of compiled code (where indices out of bounds come to light, too).

    Without a ``problem`` it plays one with one resource, one in which arms have largest costs of their own, and one
    with two resources unless the policy is for one only. The first time most of it is the compiler's work, which may
    take half a minute; with ``progress`` it says on standard error what it does.

    >>> check_policy("uniform")
    """
    (chosen,) = label_policies(policy).values()
    check_class(type(chosen))  # type: ignore[arg-type]  # mypy takes the class for an object
    several = [] if chosen.resources == 1 else [TWO]
    broken: dict[str, None] = {}
    for each in [problem] if problem is not None else [ONE, OWN_LIMITS, *several]:
        if progress:
            resources = f"{len(each.resources)} resource{'s' * (len(each.resources) > 1)}"
            compiled = "" if isinstance(chosen, PythonPolicy) else ", compiled first if it is new"
            print(f"{chosen.name}: {each.arms} arms, {resources}{compiled} ...", file=sys.stderr, flush=True)
        broken.update(dict.fromkeys(rules_broken(chosen, each)))
    if broken:
        raise InvalidPolicy("\n".join(broken))


def rules_broken(policy: Policy, problem: Problem) -> Iterator[str]:
    """A line for each rule that the policy breaks on a problem."""
    name, compiled = type(policy).__name__, not isinstance(policy, PythonPolicy)
    in_python = PlainGame(policy, problem) if compiled else None
    has_renew = compiled and policy.renew is not renew_nothing
    in_parts = PlainGame(policy, problem, in_parts=True) if has_renew else None
    for game in (in_python, in_parts):
        if game is not None and game.out_of_bounds is not None:
            yield f"{name} must stay within its arrays, but {game.out_of_bounds}"
            return  # compiled code would read, or write, what is not its own
    try:
        first = play(policy, problem)
    except PacelineError as error:
        yield str(error)
        return
    except Exception as error:
        yield f"{name} must raise no errors, but: {in_one_line(error)}"
        return
    yield from memory_rules(policy, problem)
    if play(policy, problem) != first:
        yield f"{name} must decide the same when it is played again, got other decisions: is there hidden randomness?"
        return
    if in_python is not None:
        yield from in_python.rules_broken(first)
    if in_parts is not None:
        yield from in_parts.parts_rules_broken()
    if not policy.told_truth:  # nobody has that live
        yield from live_rules(policy, problem, first)


def setting_for(policy: Policy, problem: Problem) -> Setting:
    """What the policy is told."""
    return replace(setting_of(problem, ROUNDS), seed=SEED).seen_by(policy)


def play(policy: Policy, problem: Problem) -> Choices:
    """Its decisions, as the simulator plays it: those of a round are seen in what the books have changed by."""
    game = prepare(policy, world_of(problem), setting_for(policy, problem))
    books, before, choices = books_in(game.storage), np.zeros(problem.arms, np.int64), []
    for rounds in range(1, ROUNDS + 1):
        game.until(rounds)
        pulled = np.flatnonzero(books.pulls != before)
        choices.append(int(pulled[0]) if pulled.size else problem.arms)
        before[:] = books.pulls
    return choices


def memory_rules(policy: Policy, problem: Problem) -> Iterator[str]:
    """What a policy keeps must be its own, fresh for each game."""
    where = f"{type(policy).__name__}.new_memory"
    one = policy.new_memory(problem.arms, len(problem.resources))
    other = policy.new_memory(problem.arms, len(problem.resources))
    if any(np.shares_memory(a, b) for a, b in zip(one, other, strict=True) if a.size):
        yield f"{where} must give new arrays each time, got the same ones twice"


class Watch:
    """Stands for a function of a policy in plain Python, and looks at what it changes."""

    def __init__(self, function: Callable[..., Any], may_change: Set[str] = frozenset()) -> None:
        self.function = plain_throughout(plain(function))
        self.may_change = may_change
        self.changed: set[str] = set()

    def __call__(self, params: Any, state: State, *arguments: Any) -> Any:
        """Call it, with a scratch that holds nothing."""
        scratch = state.scratch
        for array in (scratch.rewards, scratch.costs, scratch.shares, scratch.block):
            array.fill(np.nan)  # nothing may be left over from the last round
        before = contents(state)
        given = self.function(params, state, *arguments)
        changed = {name for name, bits in contents(state).items() if bits != before[name]}
        self.changed |= changed - self.may_change
        return given


def contents(state: State) -> dict[str, bytes]:
    """All that a policy can see but the scratch, bit by bit."""
    found = {}
    for name, part in state._asdict().items():
        if name not in {"scratch", "resources"}:
            arrays = part if isinstance(part, tuple) and hasattr(part, "_fields") else (part,)
            found[name] = b"".join(array.tobytes() for array in arrays)
    return found


class PlainGame:
    """A compiled policy played in plain Python, where indices out of bounds come to light.

    With ``in_parts`` the costs of a pull are told before its reward.
    """

    def __init__(self, policy: Policy, problem: Problem, in_parts: bool = False) -> None:
        self.choose, self.renew = Watch(policy.choose), Watch(policy.renew, {"memory", "record"})
        self.where, self.where_renewed = described(type(policy), "choose"), described(type(policy), "renew")
        self.choices: Choices = []
        self.out_of_bounds: str | None = None
        setting = setting_for(policy, problem)
        functions: dict[str, Any] = {
            "choose": self.choose,
            "learn": kernel(policy.learn),
            "commit": kernel(policy.commit),
            "renew": self.renew,
        }
        parts = graft_templates(type(policy), False, functions)
        asked, told = plain_throughout(parts["ask"]), plain_throughout(parts["tell"])
        if in_parts:
            told = cost_first(plain_throughout(parts["tell_part"]), plain_throughout(parts["tell_rest"]))
        storage = policy.new_storage(setting, SEED, 0)
        params, sample = policy.params(setting), problem.sample(SEED)
        try:
            with np.errstate(all="ignore"):
                for _ in range(ROUNDS):
                    self.choices.append(one_round(params, storage, asked, told, sample.pull))
        except IndexError as error:
            if "out of bounds" in str(error):  # else an index that is no whole number: the compiler says it better
                self.out_of_bounds = f"in round {len(self.choices) + 1}: {error}"
        except Exception:  # whatever else is wrong, the compiler says it better
            pass

    def rules_broken(self, first: Choices) -> Iterator[str]:
        """The same decisions without the compiler, from a ``choose`` that changes nothing."""
        if self.choose.changed:
            changed = ", ".join(sorted(self.choose.changed))
            yield f"{self.where} must change nothing but state.scratch, got changes in {changed}"
        if self.choices != first:
            pairs = enumerate(zip_longest(self.choices, first), start=1)
            at = next(t for t, (here, there) in pairs if here != there)
            yield (
                f"{self.where} must decide the same in plain Python, without what an earlier round left in "
                f"state.scratch, got another decision in round {at}"
            )

    def parts_rules_broken(self) -> Iterator[str]:
        """A ``renew`` that changes nothing but what is the policy's own."""
        if self.renew.changed:
            changed = ", ".join(sorted(self.renew.changed))
            rule = "must change nothing but state.memory, state.record and state.scratch"
            yield f"{self.where_renewed} {rule}, got changes in {changed}"


def cost_first(tell_part: Callable[..., None], tell_rest: Callable[..., None]) -> Callable[..., None]:
    """`tell` in two parts."""

    def told(
        params: Any, storage: Storage, arm: int, reason: int, tag: int, reward: float, cost: Any, *units: Any
    ) -> None:
        nothing, ahead = (0,) * len(cost), (2 << len(cost)) - 2
        tell_part(params, storage, arm, math.nan, cost, *units)
        tell_rest(params, storage, arm, reason, tag, reward, cost, nothing, nothing, ahead)

    return told


def one_round(params: Any, storage: Storage, asked: Any, told: Any, pull: Any) -> int:
    """Play a round by hand: the arm, or the number of arms for none."""
    arm, reason, tag = asked(params, storage)
    arms = len(storage.limits)
    if not 0 <= arm < arms:
        return arms
    reward, cost = pull(int(arm))
    costs = tuple(cost.values()) if isinstance(cost, dict) else (cost,)
    charged = tuple(int(np.ceil(entry * UNITS)) for entry in costs)
    told(params, storage, arm, reason, tag, reward, costs, tuple(storage.limits[arm].tolist()), charged)
    return int(arm)


def live_rules(policy: Policy, problem: Problem, first: Choices) -> Iterator[str]:
    """The same decisions live, and after half of them in a bandit that was saved and loaded."""
    name = type(policy).__name__
    with tempfile.TemporaryDirectory() as folder:
        for saved in (False, True):
            try:
                bandit = bandit_for(policy, problem)
                choices = live_choices(bandit, policy, problem, Path(folder) / "saved" if saved else None)
            except PacelineError as error:
                yield f"{name} must play live, but: {error}"
                return
            except Exception as error:
                yield f"{name} must play live without errors, but: {in_one_line(error)}"
                return
            if choices != first:
                how = "live and saved half way" if saved else "live"
                yield f"{name} must decide the same {how} as simulated, got other decisions"
                return


def bandit_for(policy: Policy, problem: Problem, seed: int = SEED, rounds: int = ROUNDS) -> Bandit:
    """A bandit with the lines of a problem, on its scale."""
    names = [f"arm {arm}" for arm in range(problem.arms)]
    refills = {name: 1.0 for name, refill in zip(problem.resources, problem.refills, strict=True) if refill}
    given: dict[str, Any] = problem.to_dict()
    return Bandit(
        names,
        problem.budget,
        policy,
        max_cost=problem.named([dict(zip(names, most, strict=True)) for most in problem.most]),
        max_refill=without_name(problem.resources, refills) or None,
        scale=problem.named([1.0] * len(problem.resources)),
        start=given.get("start"),
        cap=given.get("cap"),
        seed=seed,
        rounds=rounds,
    )


def live_choices(bandit: Bandit, policy: Policy, problem: Problem, save_to: Path | None) -> Choices:
    """The decisions of a bandit that meets the draws of the simulator."""
    sample, choices = problem.sample(SEED), []
    for rounds in range(ROUNDS):
        if rounds == ROUNDS // 2 and save_to is not None:
            bandit.save(save_to)
            bandit = Bandit.load(save_to, policy=policy)
        decision = bandit.ask()
        if decision.arm is None:
            choices.append(problem.arms)
            continue
        arm = int(decision.arm.removeprefix("arm "))
        reward, cost = sample.pull(arm)
        bandit.tell(decision.id, reward, cost)
        choices.append(arm)
    return choices
