"""The first decisions of a live program: in plain Python, until machine code is there.

Compiling a policy takes seconds, and a program that is started on a new machine should not wait for that with its first
decision. The text of the policies runs without the compiler, too, and computes the same bits (the tests hold it to
that): a decision then takes a tenth of a millisecond for a few arms instead of microseconds. So a live bandit whose
machine code is not on the disk begins like that. Once its calls have taken longer than a short program's would, another
process compiles, and the bandit goes over to the machine code when it is there.

The other process is a fresh interpreter: nothing of the caller's program runs in it. It is left alone when the program
ends before it, so that the next start finds its work.
"""

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

from paceline.game import calls_for, calls_on_disk
from paceline.grafting import Calls, cache, policy_parts
from paceline.kernels.jit import without_compiler
from paceline.kernels.state import Decision, Storage
from paceline.machine import python_like_this
from paceline.policies.policy import Policy
from paceline.policies.rules import is_ours

WORTH_COMPILING = 0.1  # seconds of calls in plain Python after which many more are to be expected

HELPER = "from paceline.meanwhile import compile_given; compile_given()"

_one_helper = Lock()
_helpers: dict[tuple[int, type[Policy], int], Thread] = {}  # by process, for a copy of it has none, and kind


class LiveCalls:
    """`ask` and `tell` for a policy of this package, as good as they can be had without waiting."""

    def __init__(self, policy: Policy, resources: int) -> None:
        self.policy, self.resources = policy, resources
        self.seconds = 0.0
        self.helper: Thread | None = None
        self.process = 0  # in which the helper is
        self.plain = calls_in_python(type(policy))
        self.ask: Callable[..., Decision] = self.ask_meanwhile
        self.tell: Callable[..., None] = self.tell_meanwhile

    def ask_meanwhile(self, params: Any, storage: Storage) -> Decision:
        """`ask`, which is replaced as soon as there is a better one."""
        if self.is_compiled():
            return self.ask(params, storage)
        begun = perf_counter()
        arm, reason, tag = self.plain.ask(params, storage)
        self.seconds += perf_counter() - begun
        return Decision(int(arm), int(reason), int(tag))  # some are numbers of NumPy

    def tell_meanwhile(self, params: Any, storage: Storage, *news: Any) -> None:
        """`tell`, likewise."""
        if self.is_compiled():
            return self.tell(params, storage, *news)
        begun = perf_counter()
        self.plain.tell(params, storage, *news)
        self.seconds += perf_counter() - begun
        return None

    def is_compiled(self) -> bool:
        """Whether the machine code is there, and in place. Has it made when that is worth the time."""
        if self.helper is None or self.process != os.getpid():  # of a copy of the process the helper is not
            if self.seconds > WORTH_COMPILING:
                self.process, self.helper = os.getpid(), helper_for(self.policy, self.resources)
            return False
        if self.helper.is_alive():
            return False
        try:
            self.ask, self.tell = calls_for(self.policy, self.resources)  # and does what the helper did not get done
        except OSError:  # no cache any more, and no room for one: that is no reason to fail in the middle of a decision
            self.helper, self.seconds = None, -math.inf
            return False
        return True


def live_calls_for(policy: Policy, resources: int) -> Calls | LiveCalls:
    """`ask` and `tell` for a policy, without waiting for the compiler where that is possible.

    A policy from elsewhere is compiled before its first decision: it may not compile at all, and without the compiler
    it may fail where machine code goes on, as when it divides by zero.
    """
    if is_ours(policy) and not calls_on_disk(policy, resources):
        return LiveCalls(policy, resources)
    return calls_for(policy, resources)


@cache
def calls_in_python(policy: type[Policy]) -> Calls:
    """`ask` and `tell` for a policy, without machine code."""
    _, _, parts = policy_parts(policy)
    return Calls(without_compiler(parts["ask"]), without_compiler(parts["tell"]))


def helper_for(policy: Policy, resources: int) -> Thread:
    """What waits for another process to compile a policy: one is enough for all bandits of a kind.

    It is a thread that does not keep the program from ending.
    """
    kind = os.getpid(), type(policy), resources
    with _one_helper:
        if kind not in _helpers:
            job = base64.b64encode(pickle.dumps((policy, resources)))
            _helpers[kind] = Thread(target=compile_elsewhere, args=(job,), daemon=True)
            with suppress(RuntimeError):  # there may be no room for a thread
                _helpers[kind].start()
        return _helpers[kind]


def compile_elsewhere(job: bytes) -> None:
    """Have another process fill the cache, and wait for it; it cannot where no interpreter is found."""
    away = subprocess.DEVNULL
    with suppress(OSError, ValueError, TypeError):  # the last for an interpreter that does not know where it is
        # A session of its own: an interrupt at the keyboard is not meant for it.
        subprocess.run(
            python_like_this(HELPER), input=job, stdout=away, stderr=away, start_new_session=True, check=False
        )


def compile_given() -> None:
    """What the other process does."""
    policy, resources = pickle.loads(base64.b64decode(sys.stdin.buffer.read()))
    calls_for(policy, resources)
