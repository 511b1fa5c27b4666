"""Policies over families of problems: geometric means, paired intervals, wins and losses, files, figures."""

import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import paceline as pl
from paceline import statistics
from paceline.experiments.arena import FORMAT, Arena, compare
from paceline.experiments.scores import final_regret
from paceline.simulation.results import Run
from paceline.simulation.totals import NOTHING, Totals

SMALL = {"problems": 3, "rounds": 600, "trials": 3, "seed": 4}
THREE = ["suak", "uniform", "oracle"]


@pytest.fixture(scope="module")
def arena() -> Arena:
    """Three problems, three policies, three trials."""
    return compare("beta", THREE, **SMALL)


def handmade(regret: dict[str, list[list[float]]], min_headroom: float = 0.5) -> Arena:
    """An arena in which each policy has just the given steady regret: by label, problem and trial.

    The better of two arms can be afforded, so budget has no price: two pulls of the other are a regret of 1.
    """
    problem = pl.Problem.bernoulli([0.9, 0.4], [0.1, 0.4], budget=0.5)
    rounds = np.array([10, 100])
    results = []
    for number in range(len(next(iter(regret.values())))):
        runs = {}
        for label, by_problem in regret.items():
            ends = np.array(by_problem[number])
            pulls = np.zeros((ends.size, 2, 2), np.int64)
            pulls[:, -1, 1] = 2 * ends
            curve = np.zeros((ends.size, 2))
            counts = curve.astype(np.int64)
            totals = Totals(
                earned=curve,
                spent=curve,
                lost=curve,
                skips=counts,
                idle=counts,
                pulls=pulls,
                memory=np.zeros((ends.size, 2), NOTHING),
                min_headroom=np.full(ends.size, min_headroom),
            )
            runs[label] = Run(label, label, problem, rounds, totals)
        results.append(pl.Results(problem, 0, rounds, runs))
    return Arena("handmade", tuple(results))


def test_a_policy_against_itself_is_exactly_one(arena):
    for reference in THREE:
        (own,) = [score.gain for score in arena.scores(reference) if score.label == reference]
        assert own == statistics.Estimate(1.0, 1.0, 1.0)


def test_points_of_a_grid_are_not_taken_for_problems_of_their_own(arena):
    ratio = arena.scores()[0].ratio
    twice = Arena("twice", arena.results * 2, (0, 1, 2) * 2)
    again = twice.scores()[0].ratio
    assert (again.value, again.low, again.high) == pytest.approx((ratio.value, ratio.low, ratio.high))
    careless = Arena("careless", arena.results * 2).scores()[0].ratio
    assert careless.high - careless.low < 0.8 * (ratio.high - ratio.low)


# Wins and losses.


def test_wins_and_losses_of_handmade_regret():
    """Three trials: beyond noise are 19.2 standard errors. On the third problem nobody is."""
    arena = handmade(
        {
            "suak": [[10, 12, 11], [10, 12, 11], [10, 30, 20], [5, 5, 5]],
            "good": [[1, 3, 2], [20, 22, 21], [14, 25, 21], [4, 4, 4]],
            "bad": [[50, 52, 51], [50, 52, 51], [11, 29, 17], [5, 5, 5]],
        }
    )
    by_label = {score.label: score for score in arena.scores()}
    counted = {
        label: (score.won, score.drawn, score.lost, score.better, score.worse) for label, score in by_label.items()
    }
    assert counted == {"suak": (1, 1, 2, 0, 0), "good": (2, 1, 1, 2, 1), "bad": (0, 1, 3, 0, 2)}
    assert [row[-1] for row in arena.by_problem().rows] == ["good", "suak", "draw", "good"]
    assert {row[0]: row[3:8] for row in arena.table().rows}["good"] == ("2", "1", "1", "2", "1")
    limit = pl.theory.limit(arena.problems[0], 100)
    bias = [1 / (2 * 3 * 51**2), 1 / (2 * 3 * 51**2), 84 / (2 * 3 * 19**2), 0.0]  # variance / (2 trials mean^2)
    means = (51 * 51 * 19 * 5) ** (1 / 4) * math.exp(sum(bias) / 4)
    assert by_label["bad"].ratio.value == pytest.approx(means / limit)
    wrong_arms = pytest.approx((51 + 51 + 19 + 5) / 4 / limit)
    assert by_label["bad"].causes == {"wrong_arms": wrong_arms, "idle": 0, "unspent": 0}
    bias = [1 / (2 * 3 * 11**2), 1 / (2 * 3 * 11**2), 100 / (2 * 3 * 20**2), 0.0]
    assert by_label["bad"].gain.value == pytest.approx((11 * 11 * 20 * 5) ** (1 / 4) * math.exp(sum(bias) / 4) / means)


def test_a_lower_mean_within_noise_is_a_draw():
    arena = handmade({"suak": [[10, 11, 30]], "good": [[9, 8, 20]], "other": [[11, 9, 28]]})
    assert [(score.won, score.drawn, score.lost) for score in arena.scores()] == [(0, 1, 0)] * 3
    assert arena.by_problem().rows[0][-1] == "draw"


def test_nobody_wins_alone():
    assert [(score.won, score.drawn) for score in handmade({"suak": [[10, 12]]}).scores()] == [(0, 1)]


def test_regret_below_the_floor_counts_as_the_floor():
    arena = handmade({"suak": [[0, 0]], "other": [[5, 5]]})
    assert [score.gain.value for score in arena.scores()] == pytest.approx([1.0, 0.1 / 5])


def test_a_single_trial_decides_nothing():
    arena = handmade({"suak": [[10]], "good": [[1]]})
    assert [(score.won, score.drawn, score.better, score.worse) for score in arena.scores()] == [(0, 1, 0, 0)] * 2
    assert arena.scores()[1].ratio.high == math.inf


def test_a_capped_limit_is_marked_and_explained():
    arena = compare("rare", ["uniform"], problems=2, rounds=200, trials=2)
    assert arena.capped == [True, True]
    assert all(row[4].endswith(" †") for row in arena.by_problem().rows)
    assert arena.table().headings[1] == "regret / limit †"
    for table, words in (
        (arena.table(), "† on 2 of 2 problems the bare limit"),
        (arena.by_problem(), "† the bare limit"),
    ):
        (note,) = table.notes
        assert note.startswith(words)
        assert str(table).endswith(f"\n{note}")
        assert table.to_markdown().endswith(f"\n\n{note}")
        assert note in table._repr_html_()
    assert "capped on 2 problems" in arena.plot().get_suptitle()


def test_a_limit_that_is_not_capped_is_not_marked():
    arena = compare([pl.paper.three_arms()], ["uniform"], rounds=20_000, trials=1)
    assert arena.capped == [False]
    assert "†" not in f"{arena.table()}{arena.by_problem()}{arena.plot().get_suptitle()}"


def test_reference_is_suak_or_the_first_or_the_one_named(arena):
    assert arena.reference() == "suak"
    assert handmade({"a": [[1]], "b": [[2]]}).reference() == "a"
    assert arena.table("oracle").headings[2] == "oracle / policy"
    with pytest.raises(pl.UnknownName, match="reference must be one of suak, uniform, oracle, got 'sauk'"):
        arena.table("sauk")


def test_a_broken_promise_is_shouted_about():
    assert handmade({"a": [[1]]}, min_headroom=-0.25).table().rows[0][8] == "-0.25 OVERSPENT"
    assert handmade({"a": [[1]]}, min_headroom=0.0).table().rows[0][8] == "0"


# Real runs.


def test_each_problem_is_simulated_as_it_would_be_alone_with_trials_of_its_own(arena):
    assert list(arena.problems) == pl.problems.family("beta", 3, seed=4)
    for number, res in enumerate(arena.results):
        alone = pl.simulate(res.problem, THREE, 600, 3 * (number + 1), seed=4, checkpoints=arena.rounds.tolist())
        assert (arena.labels, arena.trials, arena.seed) == (tuple(THREE), 3, 4)
        for label in THREE:
            np.testing.assert_array_equal(res[label].steady_regret, alone[label].steady_regret[-3:])
    assert arena.rounds[-1] == 600
    assert len(arena.rounds) <= 40


def test_adding_a_policy_changes_no_other(arena):
    fewer = compare("beta", ["oracle"], **SMALL)
    np.testing.assert_array_equal(final_regret(fewer.results)[0], final_regret(arena.results)[2])


def test_limits_are_those_of_theory(arena):
    for problem, limits in zip(arena.problems, arena.limits, strict=True):
        np.testing.assert_allclose(limits, [pl.theory.limit(problem, int(at)) for at in arena.rounds])


def test_the_oracle_wins_and_nobody_overspends(arena):
    scores = {score.label: score for score in arena.scores()}
    assert scores["oracle"].lost == 0
    assert scores["oracle"].gain.value > 1
    assert all(score.min_headroom >= 0 for score in scores.values())
    for label, score in scores.items():
        means = [res[label].steady_regret[:, -1].mean() for res in arena.results]
        assert sum(score.causes.values()) == pytest.approx(np.mean(means / arena.limits[:, -1]))


def test_an_executor_gives_the_same(arena):
    with ThreadPoolExecutor(2) as executor:
        other = compare("beta", THREE, **SMALL, executor=executor)
    assert str(other.table()) == str(arena.table())


def test_a_list_of_problems_and_labels():
    arena = compare([pl.paper.three_arms()], {"two": pl.OnePhase(a=2), "suak": "suak"}, rounds=2, trials=1)
    assert arena.labels == ("two", "suak")
    assert len(arena.by_problem().rows) == 1
    assert "nan" not in str(arena.table())


def test_one_bar_for_all_problems(capsys):
    compare("beta", ["uniform"], **SMALL, progress=True)
    shown = capsys.readouterr().err
    assert "100%" in shown
    assert "5.40k/5.40k" in shown


@pytest.mark.parametrize(
    ("words", "first", "options"),
    [
        ("problems must be a kind or a list of at least one Problem, got \\[\\]", [], {}),
        ("problems must be a kind or a list", pl.paper.three_arms(), {}),
        ("problems\\[0\\] must be a Problem, got 3", [3], {}),
        ("problems\\[0\\] must have an arm that loses", [pl.Problem.beta([0.5], [0.5], budget=0.3)], {}),
        ("problems must be .* at least 1, got 0", "beta", {"problems": 0}),
        ("rounds must be .* from 2 to", "beta", {"rounds": 1}),
        ("trials must be .* got 0", "beta", {"trials": 0}),
        ("seed must be .* got -1", "beta", {"seed": -1}),
    ],
)
def test_what_cannot_be_compared_is_refused(words, first, options):
    with pytest.raises(pl.InvalidValue, match=words):
        compare(first, ["uniform"], **options)


# Files.


def contents(arena: Arena) -> dict[str, object]:
    """All there is, as bytes."""
    return {
        f"{number} {label} {name}": (array.dtype, array.shape, array.tobytes())
        for number, res in enumerate(arena.results)
        for label, run in res.items()
        for name, array in {**run.totals._asdict(), "rounds": res.rounds}.items()
    }


def test_saved_and_loaded_is_the_same(arena, tmp_path):
    path = tmp_path / "arena.npz"
    arena.save(path)
    assert list(tmp_path.iterdir()) == [path]
    again = Arena.load(path)
    assert contents(again) == contents(arena)
    assert (again.title, again.problems, again.seed) == (arena.title, arena.problems, arena.seed)
    assert [run.policy for run in again.results[0].values()] == [run.policy for run in arena.results[0].values()]
    assert str(again.table()) == str(arena.table())
    with np.load(path) as file:
        assert "head" in file


def test_a_save_that_fails_leaves_the_old_file(arena, tmp_path, monkeypatch):
    path = tmp_path / "arena.npz"
    path.write_bytes(b"old")

    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        arena.save(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_files_that_are_no_arena_are_refused(arena, tmp_path):
    path = tmp_path / "arena.npz"
    with pytest.raises(pl.UnreadableFile, match="No such file"):
        Arena.load(path)
    arena.results[0].save(path)
    with pytest.raises(pl.UnreadableFile, match=r"written by Arena\.save"):
        Arena.load(path)
    arena.save(path)
    whole = path.read_bytes()
    for damaged in (b"", b"PK", whole[: len(whole) // 2], whole[:2000] + bytes(500) + whole[2500:]):
        path.write_bytes(damaged)
        with pytest.raises(pl.UnreadableFile, match="damaged or foreign"):
            Arena.load(path)
    np.savez(path, head=np.array(json.dumps({"format": FORMAT + 1})))
    with pytest.raises(pl.UnreadableFile, match=f"has format {FORMAT + 1}; this version reads {FORMAT}"):
        Arena.load(path)


# The figure.


def test_figure_shows_every_policy(arena, tmp_path):
    figure = arena.plot(tmp_path / "new" / "arena.png")
    assert (tmp_path / "new" / "arena.png").read_bytes().startswith(b"\x89PNG")
    by_round, by_cause, spread = figure.axes
    lines = {line.get_label(): line for line in by_round.lines}
    assert list(lines) == [*THREE, "the limit"]
    for score in arena.scores():
        assert lines[score.label].get_ydata()[-1] == pytest.approx(score.ratio.value)
    assert [text.get_text() for text in by_cause.get_yticklabels()] == THREE
    np.testing.assert_allclose(
        [sum(bar.get_width() for bar in bars) for bars in zip(*by_cause.containers, strict=True)], 100
    )
    assert len([body for body in spread.collections if len(body.get_paths()) == 1]) >= 3


def test_figure_of_a_single_trial_warns_of_nothing():
    compare("beta", ["oracle"], problems=1, rounds=2, trials=1).plot()
