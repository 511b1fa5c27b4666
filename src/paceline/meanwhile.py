"""The first decisions of a live program: in plain Python, until machine code is there.

Compiling a policy takes seconds, and a program that is started on a new machine should not wait for that with its first
decision. The text of the policies runs without the compiler, too, and computes the same bits (the tests hold it to
that): a decision then takes a tenth of a millisecond for a few arms instead of microseconds. So a live bandit whose
machine code is not on the disk begins like that. Once its calls have taken longer than a short program's would, another
process compiles, and the bandit goes over to the machine code when it is there.

The other process is a fresh interpreter: nothing of the caller's program runs in it. It is left alone when the program
ends before it, so that the next start finds its work; a program that is to leave nothing behind ends it (`call_off`).
"""

import atexit
import base64
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread
from time import perf_counter
from typing import Any

from paceline.calls import (
    LearningCalls,
    calls_for,
    calls_on_disk,
    follower_for,
    follower_on_disk,
    follower_with,
    learning_calls_for,
    learning_calls_on_disk,
    part_calls_for,
    part_calls_on_disk,
)
from paceline.engine import Choice, refresh
from paceline.grafting import Calls, PartCalls, cache, policy_parts
from paceline.interrupts import signals_held
from paceline.kernels.jit import graft, without_compiler
from paceline.kernels.state import Storage
from paceline.machine import python_like_this
from paceline.policies.policy import Policy
from paceline.policies.rules import is_ours
from paceline.undo import keep, put_back

WORTH_COMPILING = 0.1  # seconds of calls in plain Python after which many more are to be expected

HELPER = "from paceline.meanwhile import compile_given; compile_given()"

_one_helper: dict[int, Lock] = {}  # by process: that of its parent may be held for ever by a thread that is not there
_ready: dict[tuple[type[Policy], int, str], Any] = {}  # machine code that is loaded, for all bandits of a kind
_followers: dict[tuple[type[Policy], int], Callable[..., None]] = {}
_helpers: dict[tuple[int, type[Policy], int, str], Thread] = {}  # by process, for a copy of it has none, and kind
_loading = Lock()  # held while a helper loads machine code: a process is neither copied nor ended in the middle of that
_endings: list[int] = []  # processes that are ending, in which nothing more is loaded
_compiling: set["subprocess.Popen[bytes]"] = set()  # the other processes

ALWAYS, PARTS, LEARNING, FOLLOWING = "always", "parts", "learning", "following"  # what functions are needed for


class Meanwhile:
    """Functions of the engine for a policy of this package, in plain Python until there is machine code."""

    use = ALWAYS

    def __init__(self, policy: Policy, resources: int) -> None:
        self.policy, self.resources = policy, resources
        self.seconds = 0.0
        self.helper: Thread | None = None
        self.process = 0  # in which the helper is

    def is_compiled(self) -> bool:
        """Whether the machine code is there, and in place. Has it made when that is worth the time."""
        if self.helper is None or self.process != os.getpid():  # of a copy of the process the helper is not
            if self.seconds > WORTH_COMPILING:
                self.process, self.helper = os.getpid(), helper_for(self.policy, self.resources, self.use)
            return False
        if self.helper.is_alive():
            return False
        try:
            self.take_over()  # and do what the helper did not get done
        except OSError:  # no cache any more, and no room for one: that is no reason to fail in the middle of a decision
            self.helper, self.seconds = None, -math.inf
            return False
        return True

    def take_over(self) -> None:
        """Put machine code in place of plain Python."""
        raise NotImplementedError

    def timed(self, function: Callable[..., Any], params: Any, storage: Storage, *others: Any) -> Any:
        """What a function in plain Python gives; the time that it takes is counted.

        Machine code is not interrupted half way, plain Python may be: then it is as if it had not been called.
        """
        begun = perf_counter()
        kept = keep(storage)
        try:
            given = function(params, storage, *others)
        except BaseException:
            with signals_held():
                put_back(storage, kept)
            raise
        self.seconds += perf_counter() - begun
        return given


class LiveCalls(Meanwhile):
    """`ask` and `tell` for a policy of this package, as good as they can be had without waiting."""

    def __init__(self, policy: Policy, resources: int) -> None:
        super().__init__(policy, resources)
        self.plain = calls_in_python(type(policy))
        self.ask: Callable[..., Choice] = self.ask_meanwhile
        self.tell: Callable[..., None] = self.tell_meanwhile

    def ask_meanwhile(self, params: Any, storage: Storage) -> Choice:
        """`ask`, which is replaced as soon as there is a better one."""
        if self.is_compiled():
            return self.ask(params, storage)
        arm, reason, tag = self.timed(self.plain.ask, params, storage)
        return int(arm), int(reason), int(tag)  # some are numbers of NumPy

    def tell_meanwhile(self, params: Any, storage: Storage, *news: Any) -> None:
        """`tell`, likewise."""
        if self.is_compiled():
            self.tell(params, storage, *news)
        else:
            self.timed(self.plain.tell, params, storage, *news)

    def take_over(self) -> None:
        """Put machine code in place of plain Python."""
        self.ask, self.tell = calls_for(self.policy, self.resources)


class LivePartCalls(Meanwhile):
    """`tell_part` and `tell_rest`, likewise."""

    use = PARTS

    def __init__(self, policy: Policy, resources: int) -> None:
        super().__init__(policy, resources)
        self.plain = part_calls_in_python(type(policy))
        self.tell_part: Callable[..., None] = self.tell_part_meanwhile
        self.tell_rest: Callable[..., None] = self.tell_rest_meanwhile

    def tell_part_meanwhile(self, params: Any, storage: Storage, *part: Any) -> None:
        """`tell_part`, which is replaced as soon as there is a better one."""
        if self.is_compiled():
            self.tell_part(params, storage, *part)
        else:
            self.timed(self.plain.tell_part, params, storage, *part)

    def tell_rest_meanwhile(self, params: Any, storage: Storage, *news: Any) -> None:
        """`tell_rest`, likewise."""
        if self.is_compiled():
            self.tell_rest(params, storage, *news)
        else:
            self.timed(self.plain.tell_rest, params, storage, *news)

    def take_over(self) -> None:
        """Put machine code in place of plain Python."""
        self.tell_part, self.tell_rest = part_calls_for(self.policy, self.resources)


class LiveLearningCalls(Meanwhile):
    """`teach` and `refresh`, likewise."""

    use = LEARNING

    def __init__(self, policy: Policy, resources: int) -> None:
        super().__init__(policy, resources)
        self.plain = learning_calls_in_python(type(policy))
        self.teach: Callable[..., None] = self.teach_meanwhile
        self.refresh: Callable[..., None] = self.refresh_meanwhile

    def teach_meanwhile(self, params: Any, storage: Storage, *lesson: Any) -> None:
        """`teach`, which is replaced as soon as there is a better one."""
        if self.is_compiled():
            self.teach(params, storage, *lesson)
        else:
            self.timed(self.plain.teach, params, storage, *lesson)

    def refresh_meanwhile(self, params: Any, storage: Storage) -> None:
        """`refresh`, likewise."""
        if self.is_compiled():
            self.refresh(params, storage)
        else:
            self.timed(self.plain.refresh, params, storage)

    def take_over(self) -> None:
        """Put machine code in place of plain Python."""
        self.teach, self.refresh = learning_calls_for(self.policy, self.resources)


class LiveFollower(Meanwhile):
    """`follow`, likewise: a journal is read without waiting for the compiler."""

    use = FOLLOWING

    def __init__(self, policy: Policy, resources: int) -> None:
        super().__init__(policy, resources)
        _, _, parts = policy_parts(type(policy))
        self.plain = without_compiler(parts["follow"])
        self.compiled: Callable[..., None] | None = None

    def __call__(self, params: Any, storage: Storage, *decision: Any) -> None:
        """Begin a round with a decision that was made earlier."""
        if self.compiled is None and not self.is_compiled():
            self.timed(self.plain, params, storage, *decision)
            return
        assert self.compiled is not None
        self.compiled(params, storage, *decision)

    def take_over(self) -> None:
        """Put machine code in place of plain Python."""
        self.compiled = follower_for(self.policy, self.resources)


def live_calls_for(policy: Policy, resources: int) -> Calls | LiveCalls:
    """`ask` and `tell` for a policy, without waiting for the compiler where that is possible.

    A policy from elsewhere is compiled before its first decision: it may not compile at all, and without the compiler
    it may fail where machine code goes on, as when it divides by zero.
    """
    if not is_ours(policy):
        return calls_for(policy, resources)
    kind = type(policy), resources, ALWAYS
    if kind not in _ready:
        if not calls_on_disk(policy, resources):
            return LiveCalls(policy, resources)
        _ready[kind] = calls_for(policy, resources)
    calls: Calls = _ready[kind]
    return calls


def live_follower_for(policy: Policy, params: Any, storage: Storage) -> Callable[..., None]:
    """`follow` for a policy; of one of this package it is the same for all bandits of a kind."""
    kind = type(policy), len(storage.resources)
    if not is_ours(policy):
        return follower_with(policy, params, storage)
    if kind not in _followers:
        make = follower_for if follower_on_disk(policy, kind[1]) else LiveFollower
        _followers[kind] = make(policy, kind[1])
    return _followers[kind]


def live_part_calls_for(policy: Policy, resources: int) -> PartCalls | LivePartCalls:
    """`tell_part` and `tell_rest` for a policy of this package, likewise."""
    kind = type(policy), resources, PARTS
    if kind not in _ready:
        if not part_calls_on_disk(policy, resources):
            return LivePartCalls(policy, resources)
        _ready[kind] = part_calls_for(policy, resources)
    calls: PartCalls = _ready[kind]
    return calls


def live_learning_calls_for(policy: Policy, resources: int) -> LearningCalls | LiveLearningCalls:
    """`teach` and `refresh` for a policy of this package, likewise."""
    kind = type(policy), resources, LEARNING
    if kind not in _ready:
        if not learning_calls_on_disk(policy, resources):
            return LiveLearningCalls(policy, resources)
        _ready[kind] = learning_calls_for(policy, resources)
    calls: LearningCalls = _ready[kind]
    return calls


@cache
def calls_in_python(policy: type[Policy]) -> Calls:
    """`ask` and `tell` for a policy, without machine code."""
    _, _, parts = policy_parts(policy)
    return Calls(without_compiler(parts["ask"]), without_compiler(parts["tell"]))


@cache
def part_calls_in_python(policy: type[Policy]) -> PartCalls:
    """`tell_part` and `tell_rest` for a policy, without machine code."""
    _, _, parts = policy_parts(policy)
    return PartCalls(without_compiler(parts["tell_part"]), without_compiler(parts["tell_rest"]))


@cache
def learning_calls_in_python(policy: type[Policy]) -> LearningCalls:
    """`teach` and `refresh` for a policy, without machine code."""
    _, counted, parts = policy_parts(policy)
    return LearningCalls(without_compiler(parts["teach"]), without_compiler(graft(refresh, counted, **parts)))


def helper_for(policy: Policy, resources: int, use: str) -> Thread:
    """What waits for another process to compile a policy: one is enough for all bandits of a kind.

    It is a thread that does not keep the program from ending.
    """
    kind = os.getpid(), type(policy), resources, use
    with _one_helper.setdefault(os.getpid(), Lock()):
        if kind not in _helpers:
            job = base64.b64encode(pickle.dumps((policy, resources, use)))
            _helpers[kind] = Thread(target=have_at_hand, args=(policy, resources, use, job), daemon=True)
            with suppress(RuntimeError):  # there may be no room for a thread
                _helpers[kind].start()
        return _helpers[kind]


def have_at_hand(policy: Policy, resources: int, use: str, job: bytes) -> None:
    """Have the machine code compiled elsewhere, and load it: whoever asks for a decision then need not wait for that.

    What is not on the disk all the same is left to `Meanwhile.take_over`.
    """
    compile_elsewhere(job)
    on_disk, make = MAKERS[use]
    with _loading, suppress(OSError):
        if os.getpid() not in _endings and on_disk(policy, resources):
            make(policy, resources)


def compile_elsewhere(job: bytes) -> None:
    """Have another process fill the cache, and wait for it; it cannot where no interpreter is found."""
    away = subprocess.DEVNULL
    with suppress(OSError, ValueError, TypeError):  # the last for an interpreter that does not know where it is
        with _loading:
            if os.getpid() in _endings:
                return
            # A session of its own: an interrupt at the keyboard is not meant for it.
            other = subprocess.Popen(
                python_like_this(HELPER), stdin=subprocess.PIPE, stdout=away, stderr=away, start_new_session=True
            )
            _compiling.add(other)
        try:
            with other:
                other.communicate(job)
        finally:
            _compiling.discard(other)


def call_off() -> None:
    """Compile no more: the program ends, and is to leave no process behind."""
    load_no_more()
    others = list(_compiling)
    for other in others:
        other.terminate()
    for other in others:
        other.wait()


def compile_given() -> None:
    """What the other process does."""
    policy, resources, use = pickle.loads(base64.b64decode(sys.stdin.buffer.read()))
    _, make = MAKERS[use]
    make(policy, resources)


# Whether machine code is on the disk, and what loads or compiles it.
MAKERS: dict[str, tuple[Callable[[Policy, int], bool], Callable[[Policy, int], Any]]] = {
    ALWAYS: (calls_on_disk, calls_for),
    PARTS: (part_calls_on_disk, part_calls_for),
    LEARNING: (learning_calls_on_disk, learning_calls_for),
    FOLLOWING: (follower_on_disk, follower_for),
}


def load_no_more() -> None:
    """The program ends. The lock is let go again: what else happens at the end may make a copy of the process."""
    with _loading:
        _endings.append(os.getpid())


atexit.register(load_no_more)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_loading.acquire, after_in_parent=_loading.release, after_in_child=_loading.release)
