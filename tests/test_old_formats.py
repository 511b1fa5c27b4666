"""Files of earlier formats: real ones, written by the versions of then (see data/journals/write_samples.py)."""

import json
import logging
import os
import shutil
from copy import deepcopy
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from lanes import marks_of

from paceline import Bandit, InvalidValue, JournalFailed, UnreadableFile
from paceline.live import snapshot
from paceline.live.config import read_config
from paceline.live.old_formats import settings_of_today

SAMPLES = Path(__file__).parent / "data" / "journals"
NAMES = ["1-thompson", "1-suak", "1-ucb-simplex", "2-index", "2-thompson", "2-own"]
SEEN = ("rounds", "spent", "reserved", "credited", "held", "headroom", "earned", "pending", "expired", "arms")
TORN = b'0badc0de ["ask",0,1'
ANEW = "written by an earlier version: beliefs are computed anew"

every_sample = pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name[2:])) for name in NAMES])


SILENT = ("1-thompson", "2-index", "2-thompson")


def reported(name):
    """What the earlier version said of its bandit."""
    return json.loads((SAMPLES / f"{name}.json").read_text())


def options_of(name):
    """The time at which the sample ends; and the policy, if it is the user's."""
    policy = {"policy": f"{SAMPLES / 'moody.py'}:Moody"} if name == "2-own" else {}
    return {"clock": lambda: reported(name)["time"], **policy}


def copied(name, folder):
    """A journal with the snapshot beside it."""
    for file in SAMPLES.glob(f"{name}.journal*"):
        shutil.copy(file, folder)
    return folder / f"{name}.journal"


def seen(bandit):
    """What can be seen of a bandit, as JSON has it."""
    found = {name: getattr(bandit, name) for name in SEEN} | {"estimates": bandit.estimates()}
    return json.loads(json.dumps(found))


def lines_of(path):
    """What is in the whole lines of a journal."""
    return [json.loads(line[9:]) for line in path.read_bytes().split(b"\n")[:-1]]


def in_a_list(values):
    """One number, a list, or a dict, as a list."""
    return [*values.values()] if isinstance(values, dict) else values if isinstance(values, list) else [values]


def told_in(lines):
    """All that the lines say of rewards and costs, by arm: a list of rewards, and one of costs for each resource.

    A cost that comes after a decision has expired, or before, brings the reward that silence stands for.
    """
    (_, _, settings), *rest = lines
    names, silence = [*settings["arms"]], settings["silence"]
    sides = range(1 + len(in_a_list(settings["budget"])))
    arms, told, expired = {}, {}, set()
    for kind, *values in rest:
        if kind == "ask":
            arms[len(arms) + 1] = values[0]
        elif kind == "add":
            names.append(values[0])
        elif kind in ("tell", "expire"):
            id, *news = values
            if kind == "expire":
                expired.add(id)
            known = told.setdefault(id, [None for _ in sides])
            known[:] = [old if new is None else new for old, new in zip(known, news or known, strict=True)]
            if known[0] is None and id in expired and None not in known[1:]:
                known[0] = silence
    return {
        name: [
            [known[side] for id, known in told.items() if arms[id] == slot and known[side] is not None]
            for side in sides
        ]
        for slot, name in enumerate(names)
    }


def means_in(estimate):
    """The means of an estimate as JSON has it: of the reward, and of the cost in each resource."""
    _, _, reward, cost = estimate
    return [reward[0], *[each[0] for each in (cost.values() if isinstance(cost, dict) else [cost])]]


def without_means(found, name):
    """What can be seen but for the means: with them, what is known of open pulls counts today, and did not then.

    With silence the pulls of an estimate are those whose reward is known, whatever else is known of them.
    """
    fields = 1 if name in SILENT else 2
    counted = {arm: estimate[:fields] for arm, estimate in found["estimates"].items()}
    return {**{name: found[name] for name in SEEN}, "estimates": counted}


def go_on(bandit, rounds=30):
    """Ask and tell for a while; gives the decisions."""
    decisions = []
    for number in range(rounds):
        try:
            decision = bandit.ask()
        except RuntimeError:
            continue  # of the policy
        decisions.append((decision.arm, decision.reason))
        if decision.arm and number % 3:
            bandit.tell(decision.id, 1.0, {"money": 0.1, "calls": 0.2} if isinstance(bandit.spent, dict) else 0.1)
    return decisions


def state_of(bandit):
    """Everything in the books."""
    return json.dumps(snapshot.describe_ledger(bandit._ledger), default=list)


def formats_in(path):
    """The formats in the headers of a journal's segments, by their names."""
    files = [file for file in path.parent.iterdir() if file.name.removeprefix(path.name) in ("", ".000001")]
    return {file.name.removeprefix(path.name): json.loads(file.read_bytes().split(b"\n")[0][9:])[1] for file in files}


def with_whole_stock(numbers, bandit):
    """What earlier versions reported, with the unit of a stock at its cap that these had taken away."""
    numbers = deepcopy(numbers)
    for name, cap, scale in ((one.name, one.cap, one.scale) for one in bandit._ledger.config.resources):
        if cap is not None and numbers["headroom"] != bandit.headroom:
            missing = bandit.headroom[name] - numbers["headroom"][name]
            assert missing == scale * 2.0**-32
            assert bandit.headroom[name] + bandit.reserved[name] == pytest.approx(cap)
            numbers["headroom"][name] += missing
            numbers["credited"][name] = bandit.credited[name]
            assert bandit.credited[name] == pytest.approx(bandit.spent[name] + cap)
    return numbers


# Journals.


@every_sample
def test_journal_gives_the_books_of_the_version_that_wrote_it(name, tmp_path, caplog):
    told = told_in(lines_of(path := copied(name, tmp_path)))
    with Bandit.open(path, **options_of(name)) as bandit:
        assert without_means(seen(bandit), name) == without_means(with_whole_stock(reported(name), bandit), name)
        for arm, estimate in seen(bandit)["estimates"].items():
            means = [sum(values) / len(values) if values else 0.0 for values in told[arm]]
            assert means_in(estimate) == pytest.approx(means, rel=1e-12)
        assert ANEW in bandit.recovered
        assert "cut off by a crash" in bandit.recovered
    assert ANEW in caplog.text


@every_sample
def test_journal_goes_on_in_a_segment_of_its_own_format(name, tmp_path):
    path = copied(name, tmp_path)
    before = path.read_bytes()
    with Bandit.open(path, **options_of(name)) as bandit:
        go_on(bandit)
        state, numbers = state_of(bandit), seen(bandit)
    closed = path.with_name(f"{path.name}.000001")
    assert formats_in(path) == {"": 3, ".000001": int(name[0])}
    assert before == closed.read_bytes() + TORN
    with Bandit.open(path, **options_of(name)) as bandit:  # with the snapshot that sums up the old segment
        assert (state_of(bandit), seen(bandit), bandit.recovered) == (state, numbers, None)
    path.with_name(f"{path.name}.snapshot").unlink()
    with Bandit.open(path, **options_of(name)) as bandit:  # and from the first line
        assert (state_of(bandit), seen(bandit), bandit.recovered) == (state, numbers, None)


def test_deadlines_are_those_that_were_set(tmp_path):
    path, report = copied("1-thompson", tmp_path), reported("1-thompson")
    deadlines = [line[4] for line in lines_of(path) if line[0] == "ask"]
    waiting = {int(id): deadlines[int(id) - 1] for id in report["pending"] if int(id) not in report["expired"]}
    now = [report["time"]]
    with Bandit.open(path, clock=lambda: now[0]) as bandit:
        for now[0] in (report["time"] + 0.5, report["time"] + 5.25, report["time"] + 20.0):
            bandit.ask()
            due = {id for id, deadline in waiting.items() if deadline <= now[0]}
            assert set(bandit.expired) & set(waiting) == due
    assert 0 < len(due) < len(waiting)


def test_snapshot_of_an_earlier_format_is_not_in_the_way(tmp_path):
    path = copied("1-thompson", tmp_path)
    options = {**options_of("1-thompson"), "closed": "gzip"}
    with Bandit.open(path, **options) as bandit:
        assert "not used" not in bandit.recovered
        bandit.snapshot()
        go_on(bandit)
        bandit.snapshot()
        state = state_of(bandit)
    assert (tmp_path / "1-thompson.journal.000001.gz").exists()
    for file in tmp_path.glob("*.snapshot*"):
        file.unlink()
    with Bandit.open(path, **options) as bandit:
        assert state_of(bandit) == state


def test_journal_that_cannot_go_on_stays_as_it_was(tmp_path, monkeypatch):
    path = copied("1-suak", tmp_path)
    whole = path.read_bytes().rsplit(b"\n", 1)[0] + b"\n"

    def refuse(*_):
        raise OSError(1, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", refuse)
        with pytest.raises(JournalFailed, match="must go on in a new file beside it, but: Operation not permitted"):
            Bandit.open(path, **options_of("1-suak"))
    assert path.read_bytes() == whole
    with Bandit.open(path, **options_of("1-suak")) as bandit:
        assert bandit.spent == reported("1-suak")["spent"]


def rewritten(path, change):
    """Put other lines into a journal, with the checksums that they need."""
    crc, lines = 0, []
    for line in path.read_bytes().split(b"\n")[:-1]:
        text = json.dumps(change(json.loads(line[9:]))).encode()
        crc = crc32(text, crc)
        lines.append(b"%08x %b\n" % (crc, text))
    path.write_bytes(b"".join(lines))


@pytest.mark.slow
def test_reasons_and_tags_that_are_none_today_are_followed_without_harm(tmp_path):
    path = copied("1-ucb-simplex", tmp_path)

    def change(values):
        if values[0] == "ask" and values[1] >= 0:
            return ["ask", values[1], *([99, 0] if values[1] % 2 else [values[2], 77]), *values[4:]]
        return values

    rewritten(path, change)
    with Bandit.open(path, **options_of("1-ucb-simplex")) as bandit:
        assert without_means(seen(bandit), "1-ucb-simplex") == without_means(reported("1-ucb-simplex"), "1-ucb-simplex")


def test_line_that_makes_no_sense_is_named(tmp_path):
    path = copied("2-index", tmp_path)
    rewritten(path, lambda values: ["dance", 1] if values[0] == "add" else values)
    with pytest.raises(UnreadableFile, match=r"does not make sense in line \d+: \['dance', 1\] is not an event"):
        Bandit.open(path, **options_of("2-index"))


def test_format_that_is_younger_is_refused(tmp_path):
    path = copied("1-suak", tmp_path)
    rewritten(path, lambda values: [values[0], 4, *values[2:]] if values[0] == "paceline journal" else values)
    with pytest.raises(UnreadableFile, match="has format 4; this version reads 1 to 3"):
        Bandit.open(path)


# The policies of the first edition, with the parameters that its files have.
FIRST_EDITION = {
    "thompson": {"prior": 0.2, "every_arm": True},
    "optimistic": {"caution": 0.5},
    "suak": {"order": "first", "horizon": None},
    "one-phase": {"a": 2.0, "horizon": 1000},
    "primal-dual": {"a": 2.0, "horizon": 1000},
    "ucb-simplex": {"lam": 5.0},
    "uniform": {},
}
# and how many reasons each had: they are numbered as today
REASONS = {
    "thompson": 4,
    "optimistic": 5,
    "suak": 4,
    "one-phase": 3,
    "primal-dual": 3,
    "ucb-simplex": 4,
    "uniform": 2,
}


@pytest.mark.parametrize("name", FIRST_EDITION)
def test_policies_of_the_first_edition_are_known_with_all_their_parameters(name):
    first = lines_of(SAMPLES / "1-suak.journal")[0][2]
    written = {**first, "policy": {"name": name, "parameters": FIRST_EDITION[name]}}
    policy = read_config(settings_of_today(1, written), None).policy
    assert (policy.name, len(policy.reasons)) == (name, REASONS[name])
    assert {parameter: getattr(policy, parameter) for parameter in FIRST_EDITION[name]} == FIRST_EDITION[name]


def test_policy_of_the_users_must_be_given_again(tmp_path):
    path = copied("2-own", tmp_path)
    with pytest.raises(InvalidValue, match="policy 'Moody' is not one of paceline's"):
        Bandit.open(path)
    assert formats_in(path) == {"": 2}


# Saved bandits.


def means_in_file(name, arm):
    """The means of an arm by the sums in a saved file, and by the parts of its open pulls."""
    body = json.loads((SAMPLES / f"{name}.saved").read_text())["body"]
    slot, sums = next((slot, each) for slot, each in enumerate(body["arms"]) if each["name"] == arm)
    scales = in_a_list(body["settings"]["scale"])
    totals = [sums["reward_sum"] * body["settings"]["max_reward"]]
    totals += [total * scale for total, scale in zip(in_a_list(sums["cost_sum"]), scales, strict=True)]
    counts = [sums["pulls"]] * len(totals)
    for pull in body["open"]:
        if pull["slot"] == slot:
            costs = [pull["cost"]] if name[0] == "1" else pull["costs"] or [None] * len(scales)
            for side, told in enumerate([pull["reward"], *costs]):
                if told is not None:
                    totals[side] += told
                    counts[side] += 1
    return [total / max(count, 1) for total, count in zip(totals, counts, strict=True)]


@every_sample
def test_saved_bandit_is_the_one_that_the_earlier_version_saved(name, tmp_path, caplog):
    bandit = Bandit.load(SAMPLES / f"{name}.saved", **options_of(name))
    assert without_means(seen(bandit), name) == without_means(reported(name), name)
    for arm, estimate in seen(bandit)["estimates"].items():
        assert means_in(estimate) == pytest.approx(means_in_file(name, arm), rel=1e-12)
    assert "was written by an earlier version" in caplog.text
    with Bandit.open(copied(name, tmp_path), **options_of(name)) as told:  # which has seen every event
        assert bandit._ledger.pending == told._ledger.pending
        assert [*bandit._ledger.settled.items()] == [*told._ledger.settled.items()]
    go_on(bandit)
    bandit.save(tmp_path / "today")
    assert state_of(Bandit.load(tmp_path / "today", **options_of(name))) == state_of(bandit)


def test_beliefs_from_the_sums_are_those_of_the_first_edition():
    path = SAMPLES / "1-thompson.saved"
    table = json.loads(path.read_text())["body"]["table"]
    memory = Bandit.load(path)._ledger.arm_set.all.memory
    assert memory.beliefs.ravel().tolist() == pytest.approx(table, rel=1e-12)


def resaved(name, folder, change):
    """A saved file with other content, and the checksum that it needs."""
    document = json.loads((SAMPLES / f"{name}.saved").read_text())
    change(document["body"])
    document["sha256"] = snapshot.digest_of(document["format"], document["body"])
    path = folder / "changed"
    path.write_text(json.dumps(document))
    return path


def test_memory_of_another_form_is_computed_from_the_sums(tmp_path, caplog):
    whole = Bandit.load(SAMPLES / "2-index.saved")._ledger.arm_set.all.memory
    path = resaved("2-index", tmp_path, lambda body: body["memory"].pop("clocks"))
    caplog.set_level(logging.WARNING, "paceline")
    caplog.clear()
    bandit = Bandit.load(path, **options_of("2-index"))
    assert "what its policy believes is computed anew" in caplog.text
    memory = bandit._ledger.arm_set.all.memory
    assert np.allclose(memory.beliefs[:, :, 0], whole.beliefs[:, :, 0], rtol=0.1)
    assert np.allclose(memory.clocks, whole.clocks, atol=0.1)
    assert np.abs(memory.joint[:, 1]).max() < 1e-12  # as if rewards and costs were independent
    go_on(bandit)


def test_memory_that_does_not_follow_from_sums_begins_anew(tmp_path, caplog):
    path = resaved("1-suak", tmp_path, lambda body: body["memory"].pop("account_rounds"))
    bandit = Bandit.load(path, **options_of("1-suak"))
    assert "the memory of its policy begins anew" in caplog.text
    assert bandit.spent == reported("1-suak")["spent"]
    go_on(bandit)


def test_saved_file_that_was_changed_is_refused(tmp_path):
    content = (SAMPLES / "1-suak.saved").read_text()
    (tmp_path / "changed").write_text(content.replace('"rounds": 260', '"rounds": 261'))
    with pytest.raises(UnreadableFile, match="damaged or foreign"):
        Bandit.load(tmp_path / "changed")


def index_of_two_resources(**options):
    """A bandit that has learned a little, and something is pending."""
    costs = {"money": {"a": 0.25, "b": 1.0}, "calls": 1.0}
    bandit = Bandit(["a", "b"], {"money": 0.5, "calls": 0.5}, "index", costs, seed=5, clock=lambda: 7.0, **options)
    for number in range(60):
        decision = bandit.ask()
        if decision.arm is not None and number % 7:
            cost = 0.2 * (number % 5) / 4
            bandit.tell(decision.id, reward=cost * 5, cost={"money": cost, "calls": 0.4})
    return bandit


def without_covariances(path):
    """A file as it was before `index` knew of the covariances of several resources."""
    document = json.loads(path.read_text())
    memory = document["body"]["memory"]
    memory["joint"] = [[0.0, 0.0] for _ in memory["joint"]]
    del memory["moments"]
    document["sha256"] = snapshot.digest_of(document["format"], document["body"])
    path.write_text(json.dumps(document))
    return path


def test_a_memory_that_has_another_form_today_is_computed_from_the_sums(tmp_path, caplog):
    bandit = index_of_two_resources()
    bandit.save(tmp_path / "saved")
    loaded = Bandit.load(without_covariances(tmp_path / "saved"), clock=lambda: 7.0)
    assert "what policy index believes is computed anew" in caplog.text
    before, after = (snapshot.describe_ledger(one._ledger) for one in (bandit, loaded))
    assert {name for name in before if before[name] != after[name]} == {"memory"}
    known, found = bandit._ledger.arm_set.all.memory, loaded._ledger.arm_set.all.memory
    assert found.beliefs[:, :, 0] == pytest.approx(known.beliefs[:, :, 0], abs=0.05)
    assert found.moments[:, :, 0] == pytest.approx(found.beliefs[:, :, 0])
    loaded.ask()


def test_a_policy_that_does_not_follow_from_sums_refuses_a_memory_of_another_form(tmp_path):
    bandit = Bandit(["a", "b"], 0.5, "ucb-simplex")
    bandit.save(tmp_path / "saved")
    document = json.loads((tmp_path / "saved").read_text())
    del document["body"]["memory"]["accounts"]
    document["sha256"] = snapshot.digest_of(document["format"], document["body"])
    (tmp_path / "saved").write_text(json.dumps(document))
    with pytest.raises(UnreadableFile, match=r"what policy ucb-simplex remembers .* another form of accounts"):
        Bandit.load(tmp_path / "saved")


@pytest.mark.parametrize("closed", ["keep", "drop"])
def test_a_snapshot_with_a_memory_of_another_form(closed, tmp_path):
    """The journal has all that the policy needs to learn; where it was dropped, the sums have to do."""
    path = tmp_path / "journal"
    bandit = index_of_two_resources(journal=path, rotate_every=20, closed=closed)
    bandit.snapshot()
    bandit.close()
    for kept in tmp_path.glob("journal.snapshot*"):
        without_covariances(kept)
    with Bandit.open(path, clock=lambda: 7.0) as opened:
        assert ("snapshot was not used" in str(opened.recovered)) == (closed == "keep")
        assert (opened.spent, opened.reserved, opened.rounds) == (bandit.spent, bandit.reserved, bandit.rounds)
        memories = [snapshot.describe_ledger(one._ledger)["memory"] for one in (opened, bandit)]
        assert (memories[0] == memories[1]) == (closed == "keep")
        opened.ask()
