"""A bandit in coroutines: they wait for the disk elsewhere, and what nobody waits for any more is cancelled."""

import asyncio

from paceline import Bandit


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
        while bandit.rounds < 20 and "key" not in facts:
            await asyncio.sleep(0.001)
        for _ in range(200):
            if not bandit.pending:
                break
            await asyncio.sleep(0.001)

    with Bandit(["a", "b"], start=30.0, rounds=40, journal=tmp_path / "journal", fsync=True) as bandit:
        asyncio.run(story(bandit))
        assert (bandit.pending, bandit.reserved) == ({}, 0.0)
    with Bandit(["a", "b"], start=30.0, rounds=40, journal=tmp_path / "with a key", fsync=True) as bandit:
        asyncio.run(story(bandit, key="k"))
        assert len(bandit.pending) == 1, "whoever asks with the key gets it"
        assert bandit.ask(key="k").id in bandit.pending
