"""Compile ahead: fill the disk cache with the loops of some policies, on all cores.

numba compiles in one thread at a time, so the other cores are reached through other processes. Each takes policy after
policy and leaves machine code in the cache, from which this process loads it. They are fresh interpreters, not copies
of this one: nothing of the caller's program runs again in them. They are a help, no more: what they do not get done,
for whatever reason, this process does itself.
"""

import base64
import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from threading import Thread
from typing import IO, Any, NamedTuple, cast

import numpy as np

from paceline.calls import learning_calls_with_examples
from paceline.grafting import (
    GUARDED,
    UNGUARDED,
    bound_calls,
    bound_part_calls,
    bound_rare_calls,
    code_name,
    simulator_for,
)
from paceline.interrupts import interrupts_held
from paceline.kernels.jit import compile_now, folder_of, is_kept
from paceline.kernels.page import NO_PAGE
from paceline.kernels.stale import remove_stale
from paceline.machine import cores, python_like_this
from paceline.policies.policy import Policy, Setting
from paceline.policies.python_policy import PythonPolicy
from paceline.problems.problem import Problem
from paceline.worlds.log import LogWorld
from paceline.worlds.stationary import world_of
from paceline.worlds.table import TableWorld
from paceline.worlds.world import World

SECONDS = 2.0  # that a loop takes to compile, roughly

HELPER = "from paceline.compile import help_out; help_out()"
DONE = b"done\n"


class Loop(NamedTuple):
    """A function that Python calls, with arguments of the types that it will be called with."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Example(NamedTuple):
    """A policy about to play an example; what counts is the types, which are the same for every problem."""

    policy: Policy
    setting: Setting

    @property
    def start(self) -> tuple[Any, ...]:
        """The first arguments of every function."""
        return self.policy.params(self.setting.seen_by(self.policy)), self.policy.new_storage(self.setting, 0, 0)

    def on(self, world: World, rules: str = GUARDED) -> Loop:
        """What plays on such a world."""
        play = simulator_for(type(self.policy), type(world), rules=rules)
        return Loop(play, (*self.start, world.data, NO_PAGE, 1))


def simulation_loops(example: Example) -> list[Loop]:
    """What a simulation runs."""
    return [example.on(world_of(cast(Problem, example.setting.problem)))]


def free_loops(example: Example) -> list[Loop]:
    """What a simulation without the guard runs."""
    return [example.on(world_of(cast(Problem, example.setting.problem)), UNGUARDED)]


def live_loops(example: Example) -> list[Loop]:
    """What a live bandit runs: its decisions, its outcomes, its journal when it starts again, and what others learn."""
    if example.policy.told_truth:  # nobody has that live
        return []
    kind, count = type(example.policy), example.setting.resources
    none, costs = (0,) * count, (0.5,) * count
    told = 0.5, costs, none, none
    learning = [Loop(function, tuple(rest)) for function, *rest in learning_calls_with_examples(example.policy, count)]
    return [
        Loop(bound_calls(kind).ask, example.start),
        Loop(bound_calls(kind).tell, (*example.start, 0, 1, 0, *told)),
        Loop(bound_rare_calls(kind).follow, (*example.start, 0, 1, 0)),
        Loop(bound_part_calls(kind).tell_part, (*example.start, 0, *told)),
        Loop(bound_part_calls(kind).tell_rest, (*example.start, 0, 1, 0, *told, 1)),
        *(learning if example.policy.adds_up else []),  # others refuse to learn from elsewhere
    ]


def replay_loops(example: Example) -> list[Loop]:
    """What a replay of somebody else's log runs."""
    arms, count = example.setting.arms, example.setting.resources
    table = TableWorld(np.zeros((1, arms)), np.zeros((1, arms, count)))
    rows = LogWorld(np.zeros(1, np.int64), np.zeros(1), np.zeros((1, count)))
    return [example.on(table), example.on(rows)]


USES = {"simulation": simulation_loops, "live": live_loops, "replay": replay_loops, "no guard": free_loops}
USUAL = ("simulation", "live", "replay")


def example_setting(resources: int) -> Setting:
    """All that any policy may want to know of a problem."""
    names = [f"r{d + 1}" for d in range(resources)]
    costs: Any = {name: [0.2, 0.6] for name in names} if resources > 1 else [0.2, 0.6]
    budget: Any = dict.fromkeys(names, 0.5) if resources > 1 else 0.5
    problem = Problem.beta([0.3, 0.9], costs, budget)
    return Setting(problem.arms, problem.rates, 1_000, problem)


class Job(NamedTuple):
    """A policy and what it is to be used for; small to send."""

    policy: Policy
    uses: tuple[str, ...]
    resources: int = 1

    def loops(self) -> list[Loop]:
        """All functions that these uses need."""
        example = Example(self.policy, example_setting(self.resources))
        return [loop for use in self.uses for loop in USES[use](example)]

    def missing(self) -> list[Loop]:
        """Those that are neither in this process nor on its disk."""
        return [loop for loop in self.loops() if not is_kept(loop.function, *loop.arguments)]

    def do(self) -> None:
        """Compile what is missing. Ctrl-C waits for the loop at hand: inside the compiler it may get lost."""
        for loop in self.missing():
            with interrupts_held():
                compile_now(loop.function, *loop.arguments)


def compile_ahead(
    policies: Sequence[Policy],
    uses: Sequence[str] = USUAL,
    say: Callable[[str], None] | None = None,
    resources: Sequence[int] = (1,),
) -> int:
    """Compile what the cache lacks for these uses of these policies; says how many functions that were.

    ``say`` is told, before the work, what is going on, if there is any work. Where no cache can be written there is
    nothing to do ahead: code that cannot be kept is compiled when it is called.
    """
    jobs = jobs_for(policies, uses, resources)
    missing = [len(job.missing()) for job in jobs]
    waiting = deque(job for job, loops in zip(jobs, missing, strict=True) if loops)
    if waiting:
        workers = min(cores(), len(waiting))
        if say is not None:
            say(announcement(len(waiting), sum(missing), workers))
        share(waiting, workers - 1)
    return sum(missing)


def jobs_for(policies: Sequence[Policy], uses: Sequence[str], resources: Sequence[int]) -> list[Job]:
    """A job for each text of a policy and number of resources that go together; plain Python needs none."""
    compiled = [policy for policy in reversed(policies) if not isinstance(policy, PythonPolicy)]
    kinds = {code_name(type(policy)): policy for policy in compiled}  # presets share the code of what they preset
    return [
        Job(policy, tuple(uses), count)
        for policy in reversed(kinds.values())  # the code does not depend on the parameters
        for count in dict.fromkeys(resources)
        if policy.resources is None or count <= policy.resources
    ]


def announcement(policies: int, loops: int, workers: int) -> str:
    """What is about to happen, and for how long.

    >>> announcement(6, 6, 2)
    'compiling 6 policies for this machine, once (about 7 s) ...'
    """
    what = "1 policy" if policies == 1 else f"{policies} policies"
    return f"compiling {what} for this machine, once (about {1 + round(SECONDS * loops / workers)} s) ..."


def remove_old_code(policies: Sequence[Policy], uses: Sequence[str] = USUAL) -> int:
    """Remove the code of earlier sources of these policies and of this package; says how many files that were."""
    loops = [loop.function for job in jobs_for(policies, uses, (1,)) for loop in job.loops()]
    folders = [(folder_of(function), function) for function in loops]
    return sum(remove_stale(folder, function.__qualname__) for folder, function in folders if folder is not None)


def share(waiting: deque[Job], helpers: int) -> None:
    """Do the jobs in this process and in so many others; each takes the next when it is ready for it."""
    refused: deque[Job] = deque()
    processes = [process for process in map(started, range(helpers)) if process is not None]
    threads = [Thread(target=hand_out, args=(waiting, refused, process)) for process in processes]
    try:
        for thread in threads:
            thread.start()
        for job in taken(waiting):
            job.do()
        for thread in threads:
            thread.join()
    finally:
        for process, thread in zip(processes, threads, strict=True):
            process.kill()
            thread.join()
            process.communicate()
    for job in taken(refused):
        job.do()


def taken(waiting: deque[Job]) -> Iterator[Job]:
    """The jobs that nobody else has taken yet, one by one."""
    while waiting:
        try:
            yield waiting.popleft()
        except IndexError:  # somebody was faster
            return


def hand_out(waiting: deque[Job], refused: deque[Job], process: "subprocess.Popen[bytes]") -> None:
    """Give a helper job after job; what it cannot do comes back."""
    for job in taken(waiting):
        if not was_done(job, process):
            refused.append(job)
            return


def was_done(job: Job, process: "subprocess.Popen[bytes]") -> bool:
    """Whether a helper has done a job. It cannot when it died, or when the policy is known to this process alone."""
    to_helper, from_helper = pipes_of(process)
    try:
        to_helper.write(base64.b64encode(pickle.dumps(job)) + b"\n")
        to_helper.flush()
        return from_helper.readline() == DONE
    except (pickle.PicklingError, AttributeError, TypeError, OSError, ValueError):
        return False


def pipes_of(process: "subprocess.Popen[bytes]") -> tuple[IO[bytes], IO[bytes]]:
    """To and from a helper."""
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def started(_: int) -> "subprocess.Popen[bytes] | None":
    """A helper, unless no interpreter can be found, or there is no room for one."""
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(python_like_this(HELPER), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
    except (OSError, ValueError, TypeError):  # the last for an interpreter that does not know where it is
        return None


def help_out() -> None:
    """The life of a helper: a job per line on standard input, a word on standard output for each."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else is printed is no answer
    for line in sys.stdin.buffer:
        job: Job = pickle.loads(base64.b64decode(line))
        job.do()
        answers.write(DONE)
