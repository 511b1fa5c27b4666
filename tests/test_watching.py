"""What an operator sees of a live bandit: a status, log lines, and numbers for Prometheus and OpenTelemetry."""

import logging
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

import paceline as pl
from paceline.live import status

ODD = 'a "quoted"\\back\nslash {x="1"} ü'
POOR = "headroom below the largest cost"


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def a_bandit_with_a_past(clock: Clock) -> pl.Bandit:
    """Pulls, skips, a cancelled decision, an expired one, two that wait, an arm that is paused, an overrun."""
    bandit = pl.Bandit(
        [ODD, "b"], {"money": 0.75, "calls": 2.0}, max_cost=1.0, clock=clock, expires=100.0, seed=3, policy="thompson"
    )
    pulls = [decision for decision in (bandit.ask() for _ in range(60)) if decision.arm is not None]
    for decision in pulls[5:]:
        bandit.tell(decision.id, reward=0.5, cost={"money": 0.25, "calls": 1.0})
    bandit.cancel(pulls[0].id)
    clock.time = 10.0
    bandit.expire(pulls[1].id)
    bandit.tell(pulls[2].id, reward=0.0, cost={"money": 1.5, "calls": 1.0}, overrun=True)
    bandit.pause("b")
    clock.time = 30.0
    return bandit


def expected(status: pl.Status, name: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """What should be shown of a status: said once more, number by number."""
    found = {
        ("rounds_total",): status.rounds,
        ("earned_total",): status.earned,
        ("policy_info", ("policy", status.policy)): 1,
        ("pending",): status.pending,
        ("pending_expired",): status.expired,
        ("pending_oldest_seconds",): status.ages.oldest,
        ("pending_median_seconds",): status.ages.median,
        ("starving",): 0 if status.starving is None else 1,
        ("recent_sat_out_ratio",): sum(status.recent.sat_out.values()) / status.recent.rounds,
    }
    for resource in ("money", "calls"):
        for thing in ("credited", "spent", "reserved", "headroom", "held", "overdrawn"):
            found[thing, ("resource", resource)] = getattr(status, thing)[resource]
        for thing in ("lost", "overrun"):
            found[f"{thing}_total", ("resource", resource)] = getattr(status, thing)[resource]
    for reason, count in status.skips.items():
        found["skips_total", ("reason", reason)] = count
    for arm, fared in status.arms.items():
        for reason, count in fared.pulls.items():
            found["pulls_total", ("arm", arm), ("reason", reason)] = count
        for resource, cost in fared.cost.items() if fared.costs else ():
            found["arm_cost_mean", ("arm", arm), ("resource", resource)] = cost
        found["cancelled_total", ("arm", arm)] = fared.cancelled
        found["expired_total", ("arm", arm)] = fared.expired
        found["arm_pending", ("arm", arm)] = fared.pending
        found["arm_active", ("arm", arm)] = 1 if fared.status == "active" else 0
        if fared.rewards:
            found["arm_reward_mean", ("arm", arm)] = fared.reward
    return {(f"paceline_{key[0]}", frozenset({("bandit", name), *key[1:]})): value for key, value in found.items()}


def samples_in(families: Any) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    samples = [sample for family in families for sample in family.samples]
    found = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}
    assert len(found) == len(samples)  # none is there twice
    return found


# Prometheus.


def test_an_arm_of_which_nothing_is_known_has_no_means() -> None:
    """A mean of 0 would look like an arm that brings nothing and costs nothing."""
    bandit = pl.Bandit(["told", "asked", "half"], budget=1.0)
    decisions = {arm: bandit.ask(arms=[arm]) for arm in bandit.arms}
    bandit.tell(decisions["told"].id, reward=0.5, cost=0.25)
    bandit.tell(decisions["half"].id, cost=0.25)
    known = {name: (arm.rewards, arm.costs) for name, arm in bandit.status().arms.items()}
    assert known == {"told": (1, 1), "asked": (0, 0), "half": (0, 1)}
    lines = pl.prometheus_text(bandit.status()).splitlines()
    assert [line for line in lines if line.startswith("paceline_arm_reward_mean{")] == [
        'paceline_arm_reward_mean{bandit="bandit",arm="told"} 0.5'
    ]
    assert [line.split("arm=")[1] for line in lines if line.startswith("paceline_arm_cost_mean{")] == [
        '"told",resource="cost"} 0.25',
        '"half",resource="cost"} 0.25',
    ]


@pytest.mark.parametrize(("openmetrics", "parser"), [(False, parse), (True, parse_openmetrics)])
def test_prometheus_reads_what_the_status_says(openmetrics: bool, parser: Any) -> None:
    status = a_bandit_with_a_past(Clock()).status()
    assert (status.expired, status.ages.oldest, status.overrun["money"], status.pending) == (1, 30.0, 0.5, 3)
    name = 'ads "1"\n'
    families = list(parser(pl.prometheus_text({name: status}, openmetrics=openmetrics)))
    assert samples_in(families) == expected(status, name)
    for family in families:
        assert family.documentation
        is_counter = any(sample.name.endswith("_total") for sample in family.samples)
        assert family.type == ("counter" if is_counter else "gauge")


def test_several_bandits_share_the_names() -> None:
    statuses = {name: a_bandit_with_a_past(Clock()).status() for name in ("ads", "push")}
    text = pl.prometheus_text(statuses)
    assert samples_in(parse(text)) == expected(statuses["ads"], "ads") | expected(statuses["push"], "push")
    heads = [line for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(heads) == len(set(heads))


def test_one_resource_without_a_name_is_called_cost() -> None:
    bandit = pl.Bandit(["a"], budget=1.0)
    bandit.ask()
    found = samples_in(parse(pl.prometheus_text({"ads": bandit.status()})))
    assert found["paceline_reserved", frozenset({("bandit", "ads"), ("resource", "cost")})] == 1.0


def test_arms_can_be_left_out() -> None:
    found = samples_in(parse(pl.prometheus_text({"ads": a_bandit_with_a_past(Clock()).status()}, arms=False)))
    assert not [labels for _, labels in found if "arm" in dict(labels)]
    assert ("paceline_rounds_total", frozenset({("bandit", "ads")})) in found


def test_no_counter_ever_goes_down() -> None:
    """A correction lowers what is spent, a debit what is credited: neither may be a counter."""
    clock = Clock()
    bandit = a_bandit_with_a_past(clock)
    late = bandit.expired[0]
    changes = [
        lambda: bandit.tell(late, reward=0.0, cost={"money": 0.0, "calls": 0.0}),
        lambda: bandit.debit({"calls": 1.0}),
        lambda: bandit.cancel(next(iter(bandit.pending))),
        lambda: bandit.set(policy="index"),
        bandit.ask,
    ]
    before = bandit.status()
    for change in changes:
        change()
        after = bandit.status()
        old, new = (
            {key: value for key, value in expected(status, "ads").items() if key[0].endswith("_total")}
            for status in (before, after)
        )
        assert [key for key, value in old.items() if new.get(key, -1.0) < value] == []
        before = after
    assert before.spent["calls"] + before.credited["calls"] > 0.0


def test_a_scrape_over_http() -> None:
    bandit = a_bandit_with_a_past(Clock())

    class Metrics(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that http.server calls
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.end_headers()
            self.wfile.write(pl.prometheus_text({"ads": bandit.status()}).encode())

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Metrics) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        server.shutdown()
        thread.join()
    assert samples_in(parse(text)) == expected(bandit.status(), "ads")


# OpenTelemetry.


@pytest.fixture
def readers() -> Iterator[tuple[Any, list[InMemoryMetricReader]]]:
    found = [InMemoryMetricReader(), InMemoryMetricReader()]
    provider = MeterProvider(metric_readers=found)
    yield provider.get_meter("test"), found
    provider.shutdown()


def points_in(reader: InMemoryMetricReader) -> dict[tuple[str, frozenset[tuple[str, Any]]], float]:
    """What was collected, by the names that Prometheus would see."""
    data = reader.get_metrics_data()
    assert data is not None
    found = {}
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        is_counter = bool(getattr(metric.data, "is_monotonic", False))
        ending = "_total" * is_counter + "_seconds" * (metric.unit == "s")
        assert metric.description
        for point in metric.data.data_points:
            name = metric.name.replace(".", "_") + ending
            found[name, frozenset(dict(point.attributes or {}).items())] = point.value
    return found


def test_a_meter_shows_what_the_status_says(readers: Any) -> None:
    meter, (reader, _) = readers
    bandit = a_bandit_with_a_past(Clock())
    pl.opentelemetry_metrics(meter, lambda: {"ads": bandit.status()})
    assert points_in(reader) == expected(bandit.status(), "ads")


def test_a_collection_is_one_picture_however_many_readers(readers: Any) -> None:
    """The bandit goes on while the instruments are asked one by one: all show the same moment."""
    meter, pair = readers
    bandit = a_bandit_with_a_past(Clock())
    looks: list[pl.Status] = []

    def look() -> dict[str, pl.Status]:
        looks.append(bandit.status())
        bandit.ask()
        return {"ads": looks[-1]}

    pl.opentelemetry_metrics(meter, look)
    for count, reader in enumerate([pair[0], pair[0], pair[1], pair[0], pair[1]], start=1):
        assert points_in(reader) == expected(looks[-1], "ads")
        assert len(looks) == count


def test_a_look_that_fails_is_tried_again(readers: Any, caplog: pytest.LogCaptureFixture) -> None:
    meter, (reader, _) = readers
    bandit = a_bandit_with_a_past(Clock())
    moods = [KeyError("not yet"), None]

    def look() -> dict[str, pl.Status]:
        if mood := moods.pop(0):
            raise mood
        return {"ads": bandit.status()}

    pl.opentelemetry_metrics(meter, look, arms=False)
    found = points_in(reader)  # the first instrument got nothing, and the SDK has logged why
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert found["paceline_rounds_total", frozenset({("bandit", "ads")})] == bandit.rounds
    assert not moods


# Log lines.


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return lines


def ask(bandit: pl.Bandit, rounds: int) -> None:
    for _ in range(rounds):
        decision = bandit.ask()
        if decision.arm is not None:
            bandit.tell(decision.id, reward=1.0, cost=1.0)


def test_starving_is_said_once_and_again_after_it_was_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "paceline")
    bandit = pl.Bandit(["a", "b"], budget=0.0, clock=lambda: 0.0)
    ask(bandit, 2000)
    assert said(caplog) == [f"bandit of 2 arms starves: 100 % of the last 101 rounds sat out, because: {POOR}"]
    status = bandit.status()
    assert status.starving == f"100 % of the last {status.recent.rounds} rounds sat out, because: {POOR}"
    assert 1000 <= status.recent.rounds <= 1100
    bandit.credit(150.0)  # enough for 150 of the next 1000 rounds
    ask(bandit, 400)
    assert said(caplog) == ["bandit of 2 arms does not starve any more"]
    assert bandit.status().starving is None
    ask(bandit, 1500)
    (line,) = said(caplog)
    assert line.startswith("bandit of 2 arms starves: ")


def test_a_share_that_goes_up_and_down_a_little_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "paceline")
    bandit = pl.Bandit(["a", "b"], budget=0.0, clock=lambda: 0.0)
    ask(bandit, 1000)
    for _ in range(3):  # between 93 and 96 % sat out
        bandit.credit(70.0)
        ask(bandit, 500)
        bandit.credit(10.0)
        ask(bandit, 1000)
    assert len(said(caplog)) == 1


def test_the_reason_is_the_one_that_holds(caplog: pytest.LogCaptureFixture) -> None:
    bandit = pl.Bandit(["a", "b"], budget=1.0, clock=lambda: 0.0)
    bandit.pause("a")
    bandit.pause("b")
    ask(bandit, 150)
    assert said(caplog) == ["bandit of 2 arms starves: 100 % of the last 101 rounds sat out, because: no arm is active"]
    assert bandit.status().skips == {"no arm is active": 150}


def test_decisions_that_hold_all_the_money_are_named(caplog: pytest.LogCaptureFixture) -> None:
    bandit = pl.Bandit(["a", "b"], start=10.5, rounds=100, clock=lambda: 0.0)
    for _ in range(1200):
        bandit.ask()
    because = "because: headroom below the largest cost; 10 decisions wait for their cost and hold 10 of 10.5"
    assert str(bandit.status().starving).endswith(because)
    assert [text for text in said(caplog) if "starves" in text and text.endswith(because)]
    bandit.pause("a")
    bandit.pause("b")
    ask(bandit, 1200)
    assert str(bandit.status().starving).endswith("because: no arm is active")


def test_the_resource_that_is_held_is_named() -> None:
    bandit = pl.Bandit(["a"], {"money": 1.0, "calls": 0.0}, start={"calls": 1.0}, rounds=100, clock=lambda: 0.0)
    bandit.tell(bandit.ask().id, cost={"money": 0.5})
    for _ in range(200):
        bandit.ask()
    text = "1 decision waits for its cost and holds 1 of 1 calls"
    assert str(bandit.status().starving).endswith(text)


def test_a_round_that_is_saved_is_called_so() -> None:
    bandit = pl.Bandit(["a", "b"], 0.01, "ucb-simplex", max_cost={"a": 0.5, "b": 1.0}, clock=lambda: 0.0)
    for _ in range(2500):
        decision = bandit.ask()
        if decision.arm is not None:
            bandit.tell(decision.id, reward=0.5, cost={"a": 0.4, "b": 1.0}[decision.arm])
    text = bandit.status().starving
    assert text is not None
    assert text.endswith("rounds sat out, because: saving up for an arm (base, pacing)")


def test_waiting_is_said_once_and_again_after_it_was_over(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    bandit = pl.Bandit(["a"], budget=1.0, clock=clock)
    for _ in range(1900):
        bandit.ask()
        clock.time += 1.0
    text = (
        "bandit of 1 arms: {} decisions wait for their outcome, the oldest for {} seconds; what is reserved for them "
        "cannot be spent (expires= sets an end to the waiting)"
    )
    assert said(caplog) == [text.format(1001, 1000)]
    for _ in range(300):
        bandit.ask()
    assert said(caplog) == [text.format(2101, 1900)]
    for id in bandit.pending:
        bandit.cancel(id)
    bandit.credit(1.0)
    ask(bandit, 200)
    assert said(caplog) == []
    for _ in range(1100):
        bandit.ask()
    assert said(caplog) == [text.format(1001, 0)]


def test_however_many_wait_their_number_is_said(caplog: pytest.LogCaptureFixture) -> None:
    bandit = pl.Bandit(["a"], 1.0, "uniform", clock=Clock())
    for _ in range(16_200):
        bandit.ask()
    counts = [int(text.split()[4]) for text in said(caplog)]
    assert counts == [1001, 2101, 4301, 8701]
    for _ in range(1400):
        bandit.ask()
    assert [text.split()[4] for text in said(caplog)] == ["17501"]


def test_the_oldest_that_waits_is_not_one_that_has_expired(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    bandit = pl.Bandit(["a"], budget=1.0, clock=clock, expires=1000.0)
    first = bandit.ask()
    bandit.expire(first.id)
    clock.time = 500.0
    for _ in range(1100):
        bandit.ask()
    assert said(caplog) == [
        "bandit of 1 arms: 1000 decisions wait for their outcome, the oldest for 0 seconds; what is reserved for them "
        "cannot be spent"
    ]
    assert bandit.status().ages[:3] == (0.0, 0.0, 0.0)
    assert (bandit.status().pending, bandit.status().expired) == (1101, 1)


def test_what_is_told_and_kept_back_does_not_wait(caplog: pytest.LogCaptureFixture) -> None:
    bandit = pl.Bandit(["a"], budget=1.0, max_cost=0.001, scale=1.0, silence=0.0, expires=10_000.0, clock=Clock())
    for _ in range(1300):
        decision = bandit.ask(expires=5000.0)
        bandit.tell(decision.id, 1.0, 0.001)
    bandit.set(silence=None)
    bandit.pause("a")
    for _ in range(200):
        assert bandit.ask().arm is None
    assert all("wait for their outcome" not in text for text in said(caplog))


# The status.


def test_a_status_stays_as_it_is() -> None:
    clock = Clock()
    bandit = a_bandit_with_a_past(clock)
    status = bandit.status()
    before = repr(status)
    bandit.add("c")
    bandit.credit({"money": 5.0})
    for _ in range(200):
        bandit.ask()
    bandit.expire(next(iter(bandit.pending)))
    assert repr(status) == before
    assert repr(bandit.status()) != before


def test_rounds_are_all_accounted_for_also_with_another_policy() -> None:
    bandit = a_bandit_with_a_past(Clock())
    bandit.set(policy="index")
    for _ in range(50):
        bandit.ask()
    status = bandit.status()
    pulls = sum(sum(arm.pulls.values()) for arm in status.arms.values())
    assert pulls + sum(status.skips.values()) == status.rounds == 110
    assert sum(arm.pending for arm in status.arms.values()) == status.pending


def test_counts_survive_a_restart(tmp_path: Any) -> None:
    clock = Clock()
    bandit = pl.Bandit(["a", "b"], 0.4, journal=tmp_path / "journal", clock=clock)
    ask(bandit, 300)
    bandit.set(policy="thompson")
    ask(bandit, 300)
    before = bandit.status()
    bandit.save(tmp_path / "saved")
    bandit.close()
    with pl.Bandit.open(tmp_path / "journal", clock=clock) as again:
        assert again.status() == before
    assert pl.Bandit.load(tmp_path / "saved", clock=clock).status() == before


def test_what_is_told_and_kept_back_until_the_window_is_over_is_not_pending(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    bandit = pl.Bandit(["a", "b"], 1.0, "suak", expires=5000.0, silence=0.0, clock=clock)
    for _ in range(1500):
        decision = bandit.ask()
        clock.time += 1.0
        if decision.arm is not None and decision.id != 3:
            bandit.tell(decision.id, reward=1.0, cost=0.5)
    status = bandit.status()
    assert len(bandit._ledger.pending) > 1000
    assert (status.pending, list(bandit.pending), status.ages.oldest) == (1, [3], 1498.0)
    assert sum(arm.pending for arm in status.arms.values()) == 1
    assert said(caplog) == []
    clock.time += 5000.0  # all windows are over, and a few of them end with each call
    asked = [bandit.ask().arm for _ in range(100)]
    assert bandit._ledger.kept_back == 0
    assert bandit._ledger.count_awaited() == sum(arm is not None for arm in asked)


def test_many_that_wait_are_counted_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A status lets others go on in between; it says the same as one that is made in one go."""
    clock = Clock()
    bandit = pl.Bandit(["a", "b", "c"], 1.0, "uniform", start=300.0, clock=clock, expires=500.0, silence=0.0)
    for number in range(1, 201):
        clock.time += 1.0
        bandit.ask()
        if number % 3 == 0:
            bandit.tell(number, reward=0.5, cost=0.5)  # kept back until its window is over
        if number % 7 == 0:
            bandit.tell(number - 6, cost=0.5)
        if number % 11 == 0:
            bandit.expire(number)
    whole = bandit.status()
    monkeypatch.setattr(status, "AT_ONCE", 7)
    assert bandit.status() == whole
    assert whole.pending == len(bandit.pending) == sum(arm.pending for arm in whole.arms.values())
    waiting = [clock.time - id for id in bandit.pending if id not in bandit.expired]
    assert (sum(whole.ages.counts.values()), whole.ages.oldest) == (len(waiting), max(waiting))
