"""Policies in plain Python, with any library inside."""

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.errors import InvalidPolicy
from paceline.kernels.state import Decision, State, Storage, state_in
from paceline.objects import copied, dumped, restore
from paceline.policies.policy import Policy, Setting, check_declared, commit_nothing, learn_nothing

CHOSEN = 1


class PythonPolicy(Policy):
    """Base of a policy in plain Python; whatever it learns is kept in the object itself.

        reset(setting)                     before the first round; all that was learned is to be forgotten
        choose(state) -> arm or None       in every round: 0 .. K-1, or None to sit it out
        learn(state, arm, reward, cost)    what a pull has brought; cost has one entry per resource

    It plays behind the same guard as any other policy, in `simulate`, `replay` and `Bandit`: a few microseconds a round
    on top of its own time. ``setting`` has the number of arms, the rates, and ``setting.generator()``, the only source
    of randomness that a policy may draw from. Each trial plays with a copy of its own. ``state`` has the round,
    the headroom, what is known of the arms and so on (see docs/write-a-policy.md). They are copies: writing to them
    spends no money and moves no line, but spoils what you, and the reader of `estimates()`, are shown.

    Live, arms may come and go. Then `reset` is called with the new setting, and ``state.arms`` has what is known of the
    arms now in play. A bandit that is saved keeps the object as a pickle: load such files only if you trust them.

    >>> class Cheapest(PythonPolicy):
    ...     def reset(self, setting):
    ...         self.cost = [0.0] * setting.arms
    ...     def choose(self, state):
    ...         return self.cost.index(min(self.cost))
    ...     def learn(self, state, arm, reward, cost):
    ...         self.cost[arm] += cost[0]
    >>> from paceline import paper, simulate
    >>> int(simulate(paper.three_arms(), Cheapest(), rounds=100, trials=1)["Cheapest"].pulls.sum()) > 50
    True
    """

    name: ClassVar[str] = ""
    reasons: ClassVar[tuple[str, ...]] = ("headroom below the largest cost", "chosen")
    tag_is_arm = True

    def __new__(cls, /, *_: object, **__: object) -> "PythonPolicy":
        check_declared(cls)
        return object.__new__(cls)

    def __init_subclass__(cls) -> None:
        if "name" not in vars(cls):
            cls.name = cls.__name__

    def reset(self, setting: Setting) -> None:
        """Forget everything."""

    def choose(self, state: State) -> int | None:  # type: ignore[override]
        """An arm, or None."""
        raise NotImplementedError

    def learn(self, state: State, arm: int, reward: float, cost: npt.NDArray[np.float64]) -> None:
        """What a pull has brought."""

    def params(self, setting: Setting) -> Any:
        """A copy that has just been reset, to play one game with."""
        return Session(self, setting)


class Session:
    """One game of a plain-Python policy: what stands for the numbers of a compiled one."""

    def __init__(self, policy: PythonPolicy, setting: Setting) -> None:
        self.policy = copied(policy, InvalidPolicy)
        self.arms = setting.arms
        self.mistake: InvalidPolicy | None = None  # the last choice that was none
        self.policy.reset(setting)
        self._storage: Storage | None = None
        self._state: State | None = None

    def state(self, storage: Storage) -> State:
        """What the policy is shown: views that the engine keeps up to date."""
        if self._state is None or self._storage is not storage:
            self._storage, self._state = storage, state_in(storage)
        return self._state

    def choose(self, storage: Storage) -> int:
        """The number of the arm chosen, K for none."""
        choice = self.policy.choose(self.state(storage))
        if choice is None:
            return self.arms
        if isinstance(choice, bool) or not isinstance(choice, Integral) or not 0 <= choice < self.arms:
            where = described(type(self.policy), "choose")
            raise InvalidPolicy(f"{where} must give an arm from 0 to {self.arms - 1}, or None, got {choice!r}")
        return int(choice)

    def learn(self, storage: Storage, arm: int, reward: float, cost: Any) -> None:
        """Pass on what a pull has brought."""
        self.policy.learn(self.state(storage), arm, reward, np.array(cost))

    def dump(self) -> bytes:
        """Everything that the policy has learned."""
        return dumped(self.policy, InvalidPolicy)

    def restore(self, content: bytes) -> None:
        """Go on from what `dump` gave."""
        restore(self.policy, content)


def described(policy: type, function: str) -> str:
    """Where a function of a policy is: its class, its name and its line.

    >>> described(PythonPolicy, "reset").partition(" (line")[0]
    'PythonPolicy.reset'
    """
    code = getattr(getattr(policy, function), "__code__", None)
    return f"{policy.__name__}.{function}" + (f" (line {code.co_firstlineno})" if code is not None else "")


def never_chosen(params: Any, state: State) -> Decision:
    """The choice is made in Python; compiled code is told of it."""
    return Decision(0, 0, 0)


class CarrierParams(NamedTuple):
    """Nothing; kernels take a non-empty tuple."""

    nothing: int


class Carrier(Policy):
    """The compiled half of every plain-Python policy: the guard and the books, without a choice."""

    name = "carrier"
    reasons = PythonPolicy.reasons
    allocates = False
    choose: ClassVar[Callable[..., Decision]] = staticmethod(never_chosen)
    learn = staticmethod(learn_nothing)
    commit = staticmethod(commit_nothing)


CARRIED = CarrierParams(0)
