"""The systems of others that are policies here: where each is from, what it asks for, what was proved of it."""

from typing import NamedTuple


class System(NamedTuple):
    """A row of a survey.

    ``source``    authors and year, as docs/references.bib has them; the letters of 2024 are the paper's.
    ``needs``     what must be known before the first round, or be true of the problem.
    ``proved``    the published regret, for the setting of its authors; nothing for what is our own.
    ``power``     of T in it, logarithms left out.
    ``line``      what was promised of the budget; behind the guard it holds in every round.
    """

    source: str
    needs: str
    proved: str
    power: float | None
    line: str


TOTAL, SOFT, EVERY = "total budget", "violations of order √T", "every round"
EXPECTED = "in expectation, after some time"
GUARD = "every round, by our guard"
LOGARITHMIC = "K log T / (δΔ²) + K log T / δ²"
SQRT = "√(K·OPT) + OPT·√(K/B)"

SYSTEMS: dict[str, System] = {
    "suak": System("Elumar, Tekin, Yağan 2025", "no mean cost at the rate", LOGARITHMIC, 0.0, EVERY),
    "one-phase": System("Li, Sun, Ye 2021", "T", "none known", None, TOTAL),
    "primal-dual": System("Li, Sun, Ye 2021", "T, one optimal base", "Kd log T / (b³Δ²) + const", 0.0, TOTAL),
    "ucb-simplex": System("Flajolet, Jaillet 2015", "κ", "λ²K² log T / (δ³Δ) + K²σ log T / δ³", 0.0, TOTAL),
    "ucb-bwk": System("Agrawal, Devanur 2014", "T", SQRT, 0.5, TOTAL),
    "sw-ucb": System("Liu, Jiang, Li 2022", "T, the variation", "√(KT) / b, without drift", 0.5, TOTAL),
    "primal-dual-bwk": System("Badanidiyuru and others 2013", "T, costs ≥ 0", SQRT, 0.5, TOTAL),
    "primal-dual-bwk (fed costs)": System("ours, after Badanidiyuru and others", "T, costs ≥ 0", "", None, GUARD),
    "lagrange-bwk": System("Immorlica and others 2019", "T", "√(KT log T) / b", 0.5, TOTAL),
    "best-of-both-worlds": System("Castiglioni, Celli, Kroer 2022", "T", "√(KT log T) / b", 0.5, TOTAL),
    "lagrange-cbwlc": System("Slivkins and others 2023", "T", "K√(T log T) / b", 0.5, TOTAL),
    "replenishable": System("Bernasconi, Castiglioni, Celli, Fusco 2024b", "T", "√(KT) / c", 0.5, EVERY),
    "exp3-six": System("Bernasconi, Castiglioni, Celli 2024a", "T", "√(KT)", 0.5, SOFT),
    "queue": System("Liu, Li, Shi, Ying 2021", "a Slater constant", "√t / δ, for every t", 0.5, EXPECTED),
    "kube": System("Tran-Thanh and others 2012", "one resource, costs > 0", "log B, known costs, no clock", 0.0, TOTAL),
    "thompson-lp": System("Ferreira, Simchi-Levi, Wang 2018", "T", "√(KT log K), Bayesian", 0.5, TOTAL),
    "skip-first": System("the paper's second naive approach", "T", "", None, GUARD),
    "control-budget (told all)": System("Kumar, Kleinberg 2022", "T, all means", "constant in T", 0.0, EVERY),
    "control-budget (learning)": System("ours, after Kumar, Kleinberg", "nothing", "", None, GUARD),
    "lagrangian": System("ours, after Immorlica and others", "T", "", None, GUARD),
    "optimistic-lp": System("ours, after Agrawal, Devanur", "nothing", "", None, GUARD),
    "index": System("ours", "nothing", "", None, GUARD),
    "epsilon-greedy": System("a simple baseline", "nothing", "", None, GUARD),
    "greedy": System("a simple baseline", "nothing", "", None, GUARD),
}
