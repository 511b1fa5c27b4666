"""Long work in turns: a rest after every turn, counted by the clock, and none where there is little to do."""

from types import SimpleNamespace

import pytest

from paceline.live import turns


@pytest.mark.parametrize(("seconds", "rests"), [(turns.TURN / 10, 9), (turns.TURN * 2, 100), (0.0, 0)])
def test_who_works_for_long_rests_after_every_turn(monkeypatch, seconds, rests):
    now, slept = [0.0], []
    monkeypatch.setattr(turns, "time", SimpleNamespace(perf_counter=lambda: now[0], sleep=slept.append))
    seen = []
    for part in turns.in_turns(range(100)):
        seen.append(part)
        now[0] += seconds  # what is done for a part
    assert seen == list(range(100))
    assert slept == [turns.REST] * rests
