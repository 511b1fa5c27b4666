"""A bandit in coroutines: they wait for the disk elsewhere, and what nobody waits for any more is cancelled."""

import asyncio
import time
from contextlib import suppress
from threading import Event, current_thread, main_thread

import pytest

from paceline import Bandit
from paceline.live.coroutines import ask_elsewhere
from paceline.live.journal import Journal


def test_coroutines_share_a_bandit(tmp_path):
    async def one(bandit):
        decision = await bandit.aask()
        if decision.arm is not None:
            await bandit.atell(decision.id, reward=0.5, cost=0.25)
        return decision.id

    async def many(bandit):
        return await asyncio.gather(*(one(bandit) for _ in range(40)))

    for options in ({}, {"journal": tmp_path / "journal", "fsync": True}):
        with Bandit(["a", "b"], budget=1.0, **options) as bandit:
            assert sorted(asyncio.run(many(bandit))) == [*range(1, 41)]
            assert (bandit.rounds, bandit.pending, bandit.reserved) == (40, {}, 0.0)
    with Bandit.open(tmp_path / "journal") as bandit:
        assert (bandit.rounds, bandit.pending) == (40, {})


def test_a_decision_that_nobody_waits_for_is_cancelled(tmp_path):
    async def story(bandit, **facts):
        asking = [asyncio.create_task(bandit.aask(**facts)) for _ in range(20)]
        await asyncio.sleep(0)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    with Bandit(["a", "b"], start=30.0, rounds=40, journal=tmp_path / "journal", fsync=True) as bandit:
        asyncio.run(story(bandit))
        assert bandit.rounds > 0, "those whose turn in another thread had come"
        assert (bandit.pending, bandit.reserved) == ({}, 0.0)
    with Bandit(["a", "b"], start=30.0, rounds=40, journal=tmp_path / "with a key", fsync=True) as bandit:
        asyncio.run(story(bandit, key="k"))
        assert len(bandit.pending) == 1, "whoever asks with the key gets it"
        assert bandit.ask(key="k").id in bandit.pending


async def give_up(bandit):
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(bandit.aask(), 0.02)


async def leave_behind(bandit):
    bandit.task = asyncio.create_task(bandit.aask())
    await asyncio.sleep(0.02)


@pytest.mark.parametrize("story", [give_up, leave_behind])
def test_a_decision_is_cancelled_although_the_loop_has_ended(tmp_path, monkeypatch, story):
    sync = Journal.sync

    def sync_slowly(journal):
        time.sleep(0.1)
        sync(journal)

    with Bandit(["a", "b"], budget=1.0, journal=tmp_path / "journal", fsync=True) as bandit:
        monkeypatch.setattr(Journal, "sync", sync_slowly)
        asyncio.run(story(bandit))
        assert (bandit.rounds, bandit.pending, bandit.reserved) == (1, {}, 0.0)


@pytest.mark.parametrize("is_made", [True, False])
def test_whoever_cancels_does_not_hold_up_the_loop(is_made):
    """Whether the decision was made, and had not come yet, or is still being made."""
    made, may_go_on, cancelled = Event(), Event(), []
    decision = Bandit(["a"], budget=1.0).ask()

    def ask():
        if not is_made:
            may_go_on.wait(10.0)
        made.set()
        return decision

    def cancel(id):
        cancelled.append((id, current_thread() is main_thread()))

    async def story():
        asking = asyncio.create_task(ask_elsewhere(ask, cancel))
        await asyncio.sleep(0)  # it begins
        if is_made:
            made.wait(10.0)  # and what is made does not come, since this does not let the loop go on
            time.sleep(0.05)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        may_go_on.set()

    asyncio.run(story())
    assert cancelled == [(decision.id, False)]
