"""ask, tell and simulate: one text for every policy and every world.

The functions from `ask` to `follow` are templates. They call ``choose``, ``commit``, ``learn`` and ``renew``, which
stand here for the functions of a policy, ``outcome``, which stands for that of a world, and ``write_row``, which writes
history or does not; grafting.py puts the real ones there and compiles the result (see kernels/jit.py). So the
simulator, the live object and the replay of a log run the very same lines.

Only these functions hold the books. A policy is shown the state, which has copies.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from paceline.kernels.budget import Books, admits, can_pay, charge, close_round, open_round, reserve, settle, settle_one
from paceline.kernels.estimates import observe, observe_part, observe_rest
from paceline.kernels.jit import kernel
from paceline.kernels.late import COST, NONE, Late, close_truth, known_ahead, next_news, post
from paceline.kernels.outlook import look_ahead
from paceline.kernels.reference import refer
from paceline.kernels.state import GUARD, SKIP, Decision, State, Storage, book_rows, state_rows

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NO_FAULT, BAD_ARM, BAD_REASON, BAD_TAG = range(4)

Choice = tuple[int, int, int]  # arm, reason, tag


def choose(params: Any, state: State) -> Decision:
    """Stands for the policy's function of that name."""
    raise NotImplementedError


def commit(params: Any, state: State, decision: Decision) -> None:
    """Stands for the policy's function of that name."""
    raise NotImplementedError


def learn(params: Any, state: State, decision: Decision, reward: float, cost: Floats) -> None:
    """Stands for the policy's function of that name."""
    raise NotImplementedError


def renew(params: Any, state: State, arm: int) -> None:
    """Stands for the policy's function of that name."""
    raise NotImplementedError


def outcome(world: Any, clock: Any, arm: int, count: int, cost: Floats) -> float:
    """Stands for the world's function of that name."""
    raise NotImplementedError


def write_row(page: Any, books: Books, decision: Decision, reward: float, cost: Any, spent: Ints) -> None:
    """Stands for `page.write_row` where history is kept, else for nothing."""
    raise NotImplementedError


def reasons() -> int:
    """Stands for the number of reasons that the policy has."""
    raise NotImplementedError


def tag_is_arm() -> bool:
    """Stands for whether the tags of the policy are arms."""
    raise NotImplementedError


@kernel
def is_pull(books: Books, arm: int) -> bool:
    """Whether a choice is an arm, not the null arm or a skip."""
    return 0 <= arm < books.pulls.size


@kernel
def enter(books: Books, state: State) -> bool:
    """Begin a round, and show the policy how things stand. Says whether some pull might be paid for."""
    payable = open_round(books, state.resources, state.rate, state.headroom, state.planned)
    state.clock.t = books.tally.t
    look_ahead(books, state)
    return payable


@kernel
def enter_freely(books: Books, state: State) -> bool:
    """Stands for `enter` where there is no guard: whatever the headroom, nothing is beyond payment."""
    enter(books, state)
    return True


@kernel
def pay_anything(_books: Books, _resources: Any, _arm: int) -> bool:
    """Stands for `can_pay` and `admits` where there is no guard. What comes of it is a headroom below 0."""
    return True


@kernel
def as_decided(_books: Books, decision: Decision) -> Decision:
    """What is done: what was decided."""
    return decision


@kernel
def fall_back(books: Books, decision: Decision) -> Decision:
    """Stands for `as_decided` where arm 0 takes the place of the null arm. It costs nothing, so it can be paid for.

    To the policy it is a refusal; what the pull brings is in the estimates.
    """
    return decision if is_pull(books, decision.arm) else Decision(0, GUARD, decision.tag)


def decide(params: Any, books: Books, state: State) -> Decision:
    """Begin a round and choose: an arm that can be paid for, or none. Of a refusal the tag is the arm refused.

    Where nothing can be paid for, the policy is asked all the same: if it wants the null arm, nothing is refused to it.
    """
    payable = enter(books, state)
    if books.pulls.size == 0:  # live, when no arm is in play
        return Decision(SKIP, GUARD, SKIP)
    chosen = choose(params, state)
    arm, reason = chosen.arm, chosen.reason
    if not payable:
        return Decision(SKIP, GUARD, arm if arm == books.pulls.size else SKIP)
    if not SKIP <= arm <= books.pulls.size:
        books.tally.fault, books.tally.faulty = BAD_ARM, arm
        return Decision(SKIP, GUARD, SKIP)
    if not GUARD < reason < reasons():
        books.tally.fault, books.tally.faulty = BAD_REASON, reason
        return Decision(SKIP, GUARD, SKIP)
    if tag_is_arm() and not SKIP <= chosen.tag <= books.pulls.size:
        books.tally.fault, books.tally.faulty = BAD_TAG, chosen.tag
        return Decision(SKIP, GUARD, SKIP)
    if is_pull(books, arm) and not can_pay(books, state.resources, arm):
        return Decision(SKIP, GUARD, arm)
    return Decision(arm, reason, chosen.tag)


def begin(params: Any, books: Books, state: State, decision: Decision) -> None:
    """Set the largest costs of a pull aside, or settle a round without one."""
    commit(params, state, decision)
    if is_pull(books, decision.arm):
        wait_for(books, state, decision.arm)
    else:
        sit_out(params, books, state, decision)


@kernel
def wait_for(books: Books, state: State, arm: int) -> None:
    """Set the largest costs of a pull aside until its outcome is known."""
    reserve(books, state.resources, arm)
    state.pending[arm] += 1


def sit_out(params: Any, books: Books, state: State, decision: Decision) -> None:
    """Settle a round without a pull."""
    tally = books.tally
    tally.idle += 1
    if decision.arm == SKIP and not (decision.reason == GUARD and decision.tag == books.pulls.size):
        tally.skips += 1
    for d in range(len(state.resources)):
        books.cost[d] = 0.0
    learn(params, state, decision, 0.0, books.cost)
    close_round(books, state.resources)


def conclude(params: Any, books: Books, state: State, decision: Decision, reward: float) -> None:
    """Take in the outcome of a pull whose costs are booked: the reward, and ``books.cost``."""
    observe(state.arms, state.resources, decision.arm, reward, books.cost)
    finish(params, books, state, decision, reward)


def finish(params: Any, books: Books, state: State, decision: Decision, reward: float) -> None:
    """All of a pull is known, and in the estimates."""
    books.tally.earned += reward
    books.pulls[decision.arm] += 1
    learn(params, state, decision, reward, books.cost)
    close_round(books, state.resources)


def take_part(params: Any, books: Books, state: State, arm: int, reward: float) -> None:
    """Take in a part of an outcome ahead of the rest: of the reward and ``books.cost`` what is a number.

    A cost among it is booked already.
    """
    observe_part(state.arms, state.resources, arm, reward, books.cost)
    renew(params, state, arm)


def conclude_rest(params: Any, books: Books, state: State, decision: Decision, reward: float, ahead: int) -> None:
    """`conclude` for a pull of which parts were taken in ahead: those with a bit in ``ahead`` (see `observe_rest`)."""
    state.pending[decision.arm] -= 1
    observe_rest(state.arms, state.resources, decision.arm, reward, books.cost, ahead)
    finish(params, books, state, decision, reward)


def ask(params: Any, storage: Storage) -> Choice:
    """One decision. A round without a pull is settled at once; a pull waits for `tell`, its largest cost reserved.

    It goes back to Python as a plain tuple. For one with names compiled code has to ask Python for its class, and an
    exception there, such as an interrupt, is more than it can bear: the process would die.
    """
    books = refer(Books(storage.tally[0], *book_rows(storage)))
    state = refer(State(storage.clock[0], storage.record[0], *state_rows(storage)))
    decision = as_decided(books, decide(params, books, state))
    begin(params, books, state, decision)
    note(books, decision)
    return decision.arm, decision.reason, decision.tag


@kernel
def note(books: Books, decision: Decision) -> None:
    """Keep the last decision in the books, too: Python may be interrupted before it has heard of it."""
    tally = books.tally
    tally.arm, tally.reason, tally.tag = decision.arm, decision.reason, decision.tag


def tell(
    params: Any,
    storage: Storage,
    arm: int,
    reason: int,
    tag: int,
    reward: float,
    cost: Any,
    released: Any,
    charged: Any,
) -> None:
    """Settle a pull with its outcome on the scale of [0, 1] and, by resource, the units to release and to charge."""
    books = refer(Books(storage.tally[0], *book_rows(storage)))
    state = refer(State(storage.clock[0], storage.record[0], *state_rows(storage)))
    for d in range(len(state.resources)):
        books.cost[d] = cost[d]
        settle_one(books, state.resources, arm, d, released[d], charged[d])
    state.pending[arm] -= 1
    conclude(params, books, state, Decision(arm, reason, tag), reward)
    books.tally.told += 1


def teach(params: Any, storage: Storage, arm: int, reward: float, cost: Any) -> None:
    """Learn from a pull that was made elsewhere: nothing is spent and nothing earned."""
    books = refer(Books(storage.tally[0], *book_rows(storage)))
    state = refer(State(storage.clock[0], storage.record[0], *state_rows(storage)))
    for d in range(len(state.resources)):
        books.cost[d] = cost[d]
    observe(state.arms, state.resources, arm, reward, books.cost)
    learn(params, state, Decision(arm, GUARD + 1, arm), reward, books.cost)


def tell_part(params: Any, storage: Storage, arm: int, reward: float, cost: Any, released: Any, charged: Any) -> None:
    """Book and learn a part of an outcome while the rest is still to come; what is not told is not a number."""
    books = refer(Books(storage.tally[0], *book_rows(storage)))
    state = refer(State(storage.clock[0], storage.record[0], *state_rows(storage)))
    for d in range(len(state.resources)):
        books.cost[d] = cost[d]
        settle_one(books, state.resources, arm, d, released[d], charged[d])
    take_part(params, books, state, arm, reward)


def tell_rest(
    params: Any,
    storage: Storage,
    arm: int,
    reason: int,
    tag: int,
    reward: float,
    cost: Any,
    released: Any,
    charged: Any,
    ahead: int,
) -> None:
    """`tell` for a pull of which parts were told ahead: the outcome is the whole one, the units are those of the rest.

    ``ahead`` has a bit for each part that was: 1 for the reward, 2 for the first cost, 4 for the second, and so on.
    """
    books = refer(Books(storage.tally[0], *book_rows(storage)))
    state = refer(State(storage.clock[0], storage.record[0], *state_rows(storage)))
    for d in range(len(state.resources)):
        books.cost[d] = cost[d]
        settle_one(books, state.resources, arm, d, released[d], charged[d])
    conclude_rest(params, books, state, Decision(arm, reason, tag), reward, ahead)
    books.tally.told += 1


def refresh(params: Any, storage: Storage) -> None:
    """Let the policy renew what it believes of every arm, after the estimates have changed."""
    state = refer(State(storage.clock[0], storage.record[0], *state_rows(storage)))
    for arm in range(state.arms.pulls.size):
        renew(params, state, arm)


def follow(params: Any, storage: Storage, arm: int, reason: int, tag: int) -> None:
    """Begin a round with a decision that was made earlier, as a journal tells it."""
    books = refer(Books(storage.tally[0], *book_rows(storage)))
    state = refer(State(storage.clock[0], storage.record[0], *state_rows(storage)))
    if enter(books, state):
        rechoose(params, state)
    begin(params, books, state, Decision(arm, reason, tag))
    note(books, Decision(arm, reason, tag))


def rechoose(params: Any, state: State) -> None:
    """Stands for `choose_again` where ``commit`` needs what a choice leaves in the scratch arrays, else for nothing."""
    raise NotImplementedError


def choose_again(params: Any, state: State) -> None:
    """Leave in the scratch arrays what `choose` left there."""
    choose(params, state)


def open_turn(storage: Storage) -> None:
    """Begin a round whose choice is made in Python."""
    books = refer(Books(storage.tally[0], *book_rows(storage)))
    state = refer(State(storage.clock[0], storage.record[0], *state_rows(storage)))
    enter(books, state)


def take_turn(params: Any, storage: Storage, arm: int, reason: int) -> Choice:
    """Begin the round with that choice, unless the guard refuses it."""
    books = refer(Books(storage.tally[0], *book_rows(storage)))
    state = refer(State(storage.clock[0], storage.record[0], *state_rows(storage)))
    decision = Decision(arm, reason, arm)
    if is_pull(books, arm) and not admits(books, state.resources, arm):
        decision = Decision(SKIP, GUARD, arm)
    decision = as_decided(books, decision)
    begin(params, books, state, decision)
    note(books, decision)
    return decision.arm, decision.reason, decision.tag


def choose_not(params: Any, state: State) -> None:
    """Nothing is needed of a choice that is known."""


def simulate(params: Any, storage: Storage, world: Any, page: Any, until: int) -> None:
    """Play against a world until round ``until`` is settled; may be called again to go on.

    Where history is kept it is written to ``page`` (see kernels/page.py).

    It ends early when the world has no more outcomes (its reward is not a number; the last pull stays open), or when
    the policy makes a mistake.
    """
    books = refer(Books(storage.tally[0], *book_rows(storage)))
    state = refer(State(storage.clock[0], storage.record[0], *state_rows(storage)))
    tally = books.tally
    while tally.t < until and tally.fault == NO_FAULT:
        decision = as_decided(books, decide(params, books, state))
        commit(params, state, decision)
        arm = decision.arm
        if not is_pull(books, arm):
            write_row(page, books, decision, 0.0, books.cost, books.spent)
            sit_out(params, books, state, decision)
            continue
        # The key is that of the books: a policy may write to its own clock.
        reward = outcome(world, tally, arm, books.pulls[arm], books.cost)
        if math.isnan(reward):
            wait_for(books, state, arm)
            break
        charge(books, state.resources)  # nothing was set aside: the news is here
        write_row(page, books, decision, reward, books.cost, books.spent)  # before the policy is handed the costs
        conclude(params, books, state, decision, reward)


def simulate_late(params: Any, storage: Storage, world: Any, late: Late, page: Any, until: int) -> None:
    """The same with news that comes later (see kernels/late.py)."""
    books = refer(Books(storage.tally[0], *book_rows(storage)))
    state = refer(State(storage.clock[0], storage.record[0], *state_rows(storage)))
    tally = books.tally
    while tally.t < until and tally.fault == NO_FAULT:
        decision = as_decided(books, decide(params, books, state))
        begin(params, books, state, decision)
        arm, reward = decision.arm, 0.0
        if is_pull(books, arm):
            reward = outcome(world, tally, arm, late.begun[arm], books.cost)
            if math.isnan(reward):
                break
            post(late, tally, arm, decision.reason, decision.tag, reward, books.cost)
        deliver(params, books, state, late)
        close_round(books, state.resources)
        close_truth(late, books)
        write_row(page, books, decision, reward, late.costs[tally.t % late.first.size], late.spent)


def deliver(params: Any, books: Books, state: State, late: Late) -> None:
    """Take in the news that arrives at the end of this round."""
    entry = next_news(late, books.tally.t)
    while entry != NONE:
        slot = entry >> 1
        arm, reason, tag = late.decisions[slot, 0], late.decisions[slot, 1], late.decisions[slot, 2]
        is_cost, is_last = entry & 1 == COST, late.missing[slot] == 0
        for d in range(len(state.resources)):
            books.cost[d] = late.costs[slot, d] if is_cost or is_last else math.nan
        if is_cost:
            settle(books, state.resources, arm)
        if is_last:
            ahead = known_ahead(late, is_cost, state.resources)
            conclude_rest(params, books, state, Decision(arm, reason, tag), late.rewards[slot], ahead)
        else:
            take_part(params, books, state, arm, math.nan if is_cost else late.rewards[slot])
        entry = next_news(late, books.tally.t)


def post_once(late: Late, storage: Storage, arm: int, reason: int, tag: int, reward: float, cost: Floats) -> None:
    """`post`, called from Python."""
    post(late, storage.tally[0], arm, reason, tag, reward, cost)


def news_once(late: Late, storage: Storage) -> int:
    """`next_news`, called from Python; with the last of a round the round is closed."""
    books = refer(Books(storage.tally[0], *book_rows(storage)))
    entry = next_news(late, books.tally.t)
    if entry == NONE:
        close_round(books, storage.resources)
        close_truth(late, books)
    return entry


def write_once(
    page: Any, storage: Storage, arm: int, reason: int, tag: int, reward: float, cost: Any, spent: Ints
) -> None:
    """`write_row`, called from Python."""
    books = refer(Books(storage.tally[0], *book_rows(storage)))
    write_row(page, books, Decision(arm, reason, tag), reward, cost, spent)


def pull_once(world: Any, clock: Any, arm: int, count: int, cost: Floats) -> float:
    """`outcome`, called from Python: a record is handed over in an array."""
    return outcome(world, clock[0], arm, count, cost)
