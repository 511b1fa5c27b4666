"""The protocol of a fleet: its messages in every order, stories with faults, and bugs that must be found."""

from functools import reduce

import pytest
from command import call, succeeded
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.cli import fleet as command
from paceline.fleet import protocol
from paceline.fleet.documents import read_account, read_row, write_account, write_row
from paceline.fleet.planted import BUGS, Rules
from paceline.fleet.protocol import (
    HOUR,
    Figures,
    Hello,
    Standing,
    add_sums,
    compose,
    declare_dead,
    give_back,
    greet,
    mint,
    open_account,
    pay_in,
    receive,
    take,
)
from paceline.fleet.stories import play_stories

NOW = 1_700_000_000_000
SMALL = st.integers(0, 50)


def begun(start=100, **options):
    """A fleet with one worker, and the worker."""
    account, row, answer = greet(open_account((start,), **options), None, Hello("w", "w"), NOW)
    standing, _ = take(Standing("w", (0,), (0,)), answer)
    return account, row, standing


# Stories.


def test_stories_with_faults_have_exact_books():
    assert [verdict.problem for verdict in play_stories(range(100), seed=1)] == [None] * 100


@pytest.mark.slow
def test_stories_without_faults_have_exact_books():
    assert [verdict.problem for verdict in play_stories(range(100), seed=2, faults=False)] == [None] * 100


@pytest.mark.slow
def test_many_stories():  # a planted bug shows within a hundred; `paceline fleet simulate` plays a million
    assert not any(verdict.problem for verdict in play_stories(range(4_000), seed=3))


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found_within_a_hundred_stories(bug):
    assert any(verdict.problem for verdict in play_stories(range(100), 1, BUGS[bug], until_broken=True))


@pytest.mark.slow
def test_a_store_that_forgets_overdraws_granted_money_and_never_minted_money():
    verdicts = play_stories(range(600), seed=1, forgets=True)
    assert any(verdict.problem for verdict in verdicts if verdict.draws)
    assert not any(verdict.problem for verdict in verdicts if not verdict.draws)
    assert sum(not verdict.draws for verdict in verdicts) > 200


def test_stories_are_the_same_whenever_they_are_played():
    assert play_stories(range(5), 7, BUGS["unchecked-pool"]) == play_stories(range(5), 7, BUGS["unchecked-pool"])


@pytest.mark.slow
def test_stories_have_what_they_promise():
    """Each fault does happen: a story without it would prove nothing."""
    seen = set()

    def receiving(account, row, message, now):
        before = account
        found = receive(account, row, message, now)
        if row is not None and message.seq <= row.seq:
            seen.add("doubled or late")
        if row is not None and row.closed:
            seen.add("speaks after it was declared dead")
        if message.closing and found[1] is None and row is not None:
            seen.add("closes")
            if min(protocol.minus(message.returned, row.returned)) < 0:
                seen.add("closes in debt")
        if min(before.pool) < 0 < max(protocol.minus(found[0].pool, before.pool)):
            seen.add("a debt is repaid")
        if found[2].row == 0:
            seen.add("late message of a life that is over")
        if before.clock is not None and now < before.clock:
            seen.add("clock set back")
        if row is not None and len(account.pool) > 1:
            seen.add("several resources")
        return found

    play_stories(range(100), 1, Rules(receive=receiving))
    assert len(seen) == 8, seen


# The command.


def test_the_command_plays_and_says_how_it_went():
    shown = succeeded("fleet", "simulate", "--stories", "50", "--seed", "4")
    assert shown.startswith("50 stories of seed 4, ")
    assert shown.endswith("wrong: 0\n")


@pytest.mark.slow
def test_the_command_finds_a_bug():
    done = call("fleet", "simulate", "--stories", "100", "--plant", "unchecked-pool")
    assert done.returncode == 1
    assert "the pool has -" in done.stdout


@pytest.mark.slow
def test_the_command_shows_what_forgetting_does():
    shown = succeeded("fleet", "simulate", "--stories", "300", "--forgets")
    assert "with minted money alone: 0 of" in shown


def test_the_command_knows_all_bugs():
    assert set(command.BUGS) == set(BUGS)


# Messages.


@given(st.data())
def test_whatever_is_doubled_or_overtaken_the_end_is_the_same(data):
    """A worker says some things; they arrive in any order and any number of times, the last of them at least once."""
    account, row, standing = begun()
    messages = []
    figures = Figures(0, (0,), (0,), (0,), {})
    for _ in range(data.draw(st.integers(1, 5))):
        rounds = figures.rounds + data.draw(st.integers(1, 5))
        figures = Figures(rounds, (rounds * 3,), (data.draw(st.integers(0, rounds)),), (1,), {"a": (rounds, rounds)})
        standing = give_back(standing, (data.draw(st.integers(0, 2)),))
        standing, message = compose(standing, figures, (data.draw(SMALL),))
        messages.append(message)
    order = data.draw(st.lists(st.sampled_from(messages), max_size=12))

    def arrive(books, message):
        account, row, _ = receive(*books, message, NOW)
        return account, row

    account, row = reduce(arrive, [*order, messages[-1]], (account, row))
    again = reduce(arrive, order, (account, row))
    assert again == (account, row)
    assert (row.rounds, row.spent, row.returned) == (figures.rounds, figures.spent, standing.returned)
    assert account.sums == figures.sums
    assert account.rounds == figures.rounds
    assert account.pool[0] == 100 + row.returned[0] - row.granted[0] >= 0


@given(st.lists(st.integers(0, 100), min_size=1, max_size=8), st.randoms())
def test_answers_in_any_order_bring_the_last_grant_once(grants, random):
    account, row, standing = begun()
    answers = [protocol.answer_of(account, row._replace(granted=(granted,))) for granted in sorted(grants)]
    answers = answers * 2
    random.shuffle(answers)
    brought = 0
    for answer in answers:
        standing, more = take(standing, answer)
        brought += more[0]
    assert brought == standing.granted[0] == max(grants)


def test_an_answer_of_another_row_brings_nothing():
    account, row, standing = begun()
    other = protocol.answer_of(account, row._replace(number=row.number + 1, granted=(50,)))
    assert take(standing, other) == (standing, (0,))


def test_a_row_that_was_forgotten_is_made_anew_with_a_larger_number():
    account, row, standing = begun()
    standing, _ = take(standing, protocol.answer_of(account, row._replace(granted=(50,))))
    standing = protocol.begin_again(standing)
    assert (standing.granted, standing.row) == ((0,), 0)
    assert take(standing, protocol.answer_of(account, row._replace(granted=(60,)))) == (standing, (0,))
    fresh, again, answer = greet(open_account((100,)), None, Hello("w", "w", standing.after), NOW)
    assert again.number == fresh.rows == row.number + 1
    assert take(standing, answer)[0].row == row.number + 1


def test_a_worker_that_was_declared_dead_keeps_its_money_and_comes_back():
    account, row, standing = begun()
    standing, message = compose(standing, Figures(1, (3,), (1,), (0,), {}), (40,))
    account, row, answer = receive(account, row, message, NOW)
    standing, _ = take(standing, answer)
    after, dead = declare_dead(account, row)
    assert after == account
    assert dead.closed
    standing, message = compose(standing, Figures(9, (27,), (11,), (0,), {"a": (1, 1)}), (0,))
    account, row, answer = receive(after, dead, message, NOW)
    assert not row.closed
    assert account.sums == {"a": (1, 1)}


def test_closed_lives_are_one_row():
    account = open_account((100,))
    for number in range(1000):
        account, row, answer = greet(account, None, Hello(f"w{number}", "w"), NOW)
        standing, _ = take(Standing(f"w{number}", (0,), (0,)), answer)
        standing, message = compose(standing, Figures(2, (6,), (1,), (0,), {"a": (1, 5)}), (0,))
        account, row, _ = receive(account, row, message, NOW)
        standing = give_back(standing, (5,))
        standing, message = compose(standing, Figures(2, (6,), (1,), (0,), {"a": (1, 5)}), (0,), closing=True)
        account, row, _ = receive(account, row, message, NOW)
        assert row is None
    assert account.past == (1000, 2000, (6000,), (1000,), (0,), (5000,), (0,), 0.0)
    assert (account.pool, account.open, account.sums) == ((5100,), 0, {"a": (1000, 5000)})


# The clock.


@given(
    st.lists(st.integers(-2 * HOUR, 2 * HOUR), max_size=12),
    st.integers(0, 10**6),
    st.integers(1, 10**7),
    st.none() | st.integers(0, 5000),
)
def test_the_clock_never_brings_more_than_the_hours_that_have_passed(steps, rate, parts, cap):
    account = mint(open_account((0,), ((rate, parts),), (cap,)), NOW)
    now = latest = NOW
    for step in steps:
        now += step
        latest = max(latest, now)
        before = account.pool[0]
        account = mint(account, now)
        assert account.pool[0] >= before
        assert cap is None or account.pool[0] <= cap
        exact = rate * (latest - NOW)
        assert account.pool[0] * parts <= exact
        if cap is None:
            assert account.pool[0] == exact // parts
    assert account.income == account.pool


def test_income_by_the_clock_changes_at_once():
    account = mint(open_account((0,), ((1, 1000),), (10**9,)), NOW)
    account = protocol.set_hourly(account, ((2, 1000),), NOW + 5500)
    assert account.pool == (5,)
    assert mint(account, NOW + 6500).pool == (7,)
    assert pay_in(account, (3,)).income == (8,)


# Texts.


@settings(max_examples=20)
@given(
    st.lists(st.integers(-(2**80), 2**80), min_size=2, max_size=2),
    st.dictionaries(st.text(max_size=4), st.tuples(st.integers(), st.integers()), max_size=3),
)
def test_accounts_and_rows_are_read_as_they_were_written(units, sums):
    account = open_account(tuple(units), ((1, 3), (0, 1)), (None, 5))._replace(sums=sums, clock=NOW)
    assert read_account(write_account(account)) == account
    _, row, _ = greet(account, None, Hello("w", "w"), NOW)
    row = row._replace(sums=sums, spent=tuple(units))
    assert read_row(write_row(row)) == row


@given(
    st.dictionaries(st.sampled_from("abc"), st.tuples(SMALL, SMALL)),
    st.dictionaries(st.sampled_from("abc"), st.tuples(SMALL, SMALL)),
)
@pytest.mark.slow
def test_sums_come_back_when_they_are_taken_off(one, other):
    without = add_sums(add_sums(one, other), other, -1)
    assert {arm: values for arm, values in without.items() if any(values)} == {
        arm: values for arm, values in one.items() if any(values)
    }
