"""Policies over families of problems: geometric means, paired intervals, wins and losses, standings, tails, figures."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from comparing import all_bits

import paceline as pl
from paceline import statistics
from paceline.experiments.together import Together, standings
from paceline.simulation.results import Run
from paceline.simulation.totals import NOTHING, Totals

SMALL = {"problems": 3, "rounds": 600, "trials": 3, "seed": 4}
THREE = ["suak", "uniform", "oracle"]


@pytest.fixture(scope="module")
def study() -> pl.Study:
    """Three problems, three policies, three trials."""
    return pl.compare("beta", THREE, **SMALL)


def handmade(regret: dict[str, list[list[float]]], min_headroom: float = 0.5) -> Together:
    """Problems on which each policy has just the given steady regret: by label, problem and trial.

    The better of two arms can be afforded, so budget has no price: two pulls of the other are a regret of 1.
    """
    problem = pl.Problem.bernoulli([0.9, 0.4], [0.1, 0.4], budget=0.5)
    rounds = np.array([10, 100])
    found = Together("handmade", "", list(regret), rounds)
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
        found.add(pl.Results(problem, 0, rounds, runs), number)
    return found


def test_a_policy_against_itself_is_exactly_one(study):
    for reference in THREE:
        (own,) = [score.gain for score in study.scores(reference) if score.label == reference]
        assert own == statistics.Estimate(1.0, 1.0, 1.0)


def taken(study: pl.Study, groups: list[int]) -> Together:
    """The problems of a study, over and over, in these groups."""
    found = Together(study.name, study.size, study.labels, study.rounds)
    results = list(study.values())
    for number, group in enumerate(groups):
        found.add(results[number % len(results)], group)
    return found


def test_points_of_a_grid_are_not_taken_for_problems_of_their_own(study):
    ratio = study.scores()[0].ratio
    again = taken(study, [0, 1, 2] * 2).scores()[0].ratio
    assert (again.value, again.low, again.high) == pytest.approx((ratio.value, ratio.low, ratio.high))
    careless = taken(study, list(range(6))).scores()[0].ratio
    assert careless.high - careless.low < 0.8 * (ratio.high - ratio.low)


# Wins and losses.


def test_the_table_says_what_it_shows_and_when(study):
    assert study.table().notes[0] == f"Steady regret at round {study.rounds[-1]:,}."


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
    assert {row[0]: row[3:8] for row in arena.table().rows}["good"] == ("2", "1", "1", "2", "1")
    limit = pl.theory.limit(pl.Problem.bernoulli([0.9, 0.4], [0.1, 0.4], budget=0.5), 100)
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
    study = pl.compare("rare", ["uniform"], problems=2, rounds=200, trials=2)
    table = study.together.table()
    assert study.together.capped == [True, True]
    assert table.headings[1] == "regret / limit †"
    (note,) = table.notes
    assert note.startswith("† on 2 of 2 problems the bare limit")
    assert str(table).endswith(f"\n{note}")
    assert table.to_markdown().endswith(f"\n\n{note}")
    assert note in table._repr_html_()
    assert "capped on 2 problems" in study.plot().get_suptitle()


def test_a_limit_that_is_not_capped_is_not_marked():
    study = pl.compare([pl.paper.three_arms()], ["uniform"], rounds=20_000, trials=1)
    assert study.together.capped == [False]
    assert "†" not in f"{study.together.table()}{study.plot().get_suptitle()}"


def test_reference_is_suak_or_the_first_or_the_one_named(study):
    assert study.together.table().headings[2] == "suak / policy"
    assert handmade({"a": [[1]], "b": [[2]]}).table().headings[2] == "a / policy"
    assert study.together.table("oracle").headings[2] == "oracle / policy"
    with pytest.raises(pl.UnknownName, match="reference must be one of suak, uniform, oracle, got 'sauk'"):
        study.scores("sauk")


def test_a_broken_promise_is_shouted_about():
    assert handmade({"a": [[1]]}, min_headroom=-0.25).table().rows[0][8] == "-0.25 OVERSPENT"
    assert handmade({"a": [[1]]}, min_headroom=0.0).table().rows[0][8] == "0"


# Standings and tails.


def test_standings_have_a_line_for_each_horizon_and_the_best_has_one():
    study = pl.compare("beta", ["oracle", "uniform"], problems=3, rounds=2000, trials=2, horizons=[2000, 500])
    table = standings([study.together])
    assert table.headings == ("experiment", "rounds", "oracle", "uniform")
    assert "All of these" not in table.notes[0]
    assert [row[:3] for row in table.rows] == [("beta", "500", "1"), ("beta", "2,000", "1")]
    for place, horizon in enumerate([500, 2000]):
        at = int(np.searchsorted(study.rounds, horizon))
        regret = np.array([[res[label].steady_regret[:, at] for res in study.values()] for label in study.labels])
        (best, other) = study.together.over_best()[horizon].values()
        expected = statistics.losses_to_best(regret)
        assert [best, other] == expected
        assert table.rows[place][3] == str(expected[1])


def test_all_studies_have_a_line_together_and_a_policy_that_sits_one_out_is_judged_on_the_others():
    first = handmade({"a": [[2.0], [4.0]], "b": [[4.0], [4.0]], "c": [[6.0], [12.0]]})
    second = handmade({"a": [[8.0]], "b": [[64.0]]})
    for each in (first, second):
        each.horizons = [100]
    table = standings([first, second])
    row = table.rows[-1]
    assert "All of these" in table.notes[0]
    logs = np.log([2.0, 1.0, 8.0])
    radius = 4.302652730 * logs.std(ddof=1) / math.sqrt(3)  # Student's t, two degrees of freedom
    low, middle, high = (f"{math.exp(logs.mean() + end):.3g}" for end in (-radius, 0.0, radius))
    assert row == ("all of these", "100", "1", f"{middle} [{low}, {high}]", "3")
    assert len(standings([first]).rows) == 1


def test_tails_are_quantiles_in_units_of_the_median_of_the_reference():
    bad = [float(2 * number) for number in range(1, 41)]
    found = handmade({"suak": [[4.0] * 40, [8.0] * 40], "bad": [bad, bad]})
    steady, wild = found.tails().rows
    assert steady == ("suak", "1", "1", "1", "1", "1")
    pooled = np.array([value / unit for unit in (4.0, 8.0) for value in bad])
    numbers = [np.median(pooled), pooled.mean(), *np.quantile(pooled, [0.9, 0.99]), 20.0]
    assert wild == ("bad", *(f"{number:.3g}" for number in numbers))


def test_few_trials_have_no_tail():
    assert handmade({"suak": [[1.0] * 19]}).tails() is None


# Real runs.


def test_each_problem_is_simulated_as_it_would_be_alone_with_trials_of_its_own(study):
    assert study.problems == pl.problems.family("beta", 3, seed=4)
    assert (study.labels, study.trials, study.seed) == (THREE, 3, 4)
    for number, res in enumerate(study.values()):
        alone = pl.simulate(res.problem, THREE, 600, 3 * (number + 1), seed=4, checkpoints=study.rounds.tolist())
        for label in THREE:
            np.testing.assert_array_equal(res[label].steady_regret, alone[label].steady_regret[-3:])
    assert study.rounds[-1] == 600
    assert len(study.rounds) <= 40


def test_adding_a_policy_changes_no_other(study):
    fewer = pl.compare("beta", ["oracle"], **SMALL)
    np.testing.assert_array_equal(fewer.together.regret[0], study.together.regret[2])


def test_limits_are_those_of_theory(study):
    assert study.together.limits == pytest.approx([pl.theory.limit(problem, 600) for problem in study.problems])


def test_the_oracle_wins_and_nobody_overspends(study):
    scores = {score.label: score for score in study.scores()}
    assert scores["oracle"].lost == 0
    assert scores["oracle"].gain.value > 1
    assert all(score.min_headroom >= 0 for score in scores.values())
    for label, score in scores.items():
        means = [res[label].steady_regret[:, -1].mean() for res in study.values()]
        assert sum(score.causes.values()) == pytest.approx(np.mean(np.array(means) / study.together.limits))


def test_an_executor_gives_the_same(study):
    with ThreadPoolExecutor(2) as executor:
        other = pl.compare("beta", THREE, **SMALL, executor=executor)
    assert [all_bits(res) for res in other.values()] == [all_bits(res) for res in study.values()]


def test_a_list_of_problems_and_labels():
    study = pl.compare([pl.paper.three_arms()], {"two": pl.OnePhase(a=2), "suak": "suak"}, rounds=2, trials=1)
    assert study.labels == ["two", "suak"]
    assert study.names == ["problem 1"]
    assert "nan" not in str(study.together.table())


def test_without_a_folder_a_study_goes_when_nobody_has_it():
    study = pl.compare("beta", ["uniform"], **SMALL)
    path = study.path
    assert path.exists()
    del study
    assert not path.exists()


def test_in_a_folder_a_study_stays_and_is_found_finished(study, tmp_path):
    kept = pl.compare("beta", THREE, **SMALL, out=tmp_path / "kept")
    again = pl.compare("beta", THREE, **SMALL, out=tmp_path / "kept", executor="processes")
    assert again.manifest == kept.manifest
    assert (kept.path / "totals.parquet").read_bytes() == (study.path / "totals.parquet").read_bytes()


def test_the_experiment_of_a_comparison_is_a_file(study):
    """What the manifest has as the file of the experiment is one: read again it is the same experiment."""
    from paceline.problems.toml import to_toml

    path = study.path / "again.toml"
    path.write_text(to_toml(study.manifest["file"]), encoding="utf-8")
    assert pl.Experiment.read(path).to_dict() == study.experiment


def test_one_bar_for_all_problems(capsys):
    pl.compare("beta", ["uniform"], **SMALL, progress=True)
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
        pl.compare(first, ["uniform"], **options)


# The figure.


def test_figure_shows_every_policy(study, tmp_path):
    figure = study.plot(tmp_path / "new" / "arena.png")
    assert (tmp_path / "new" / "arena.png").read_bytes().startswith(b"\x89PNG")
    by_round, by_cause, spread = figure.axes
    lines = {line.get_label(): line for line in by_round.lines}
    assert list(lines) == [*THREE, "the limit"]
    for score in study.scores():
        assert lines[score.label].get_ydata()[-1] == pytest.approx(score.ratio.value)
    assert [text.get_text() for text in by_cause.get_yticklabels()] == THREE
    np.testing.assert_allclose(
        [sum(bar.get_width() for bar in bars) for bars in zip(*by_cause.containers, strict=True)], 100
    )
    assert len(spread.patches) == 3  # a box for each policy


def test_figure_of_a_single_trial_warns_of_nothing():
    pl.compare("beta", ["oracle"], problems=1, rounds=2, trials=1).plot()
