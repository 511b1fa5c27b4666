"""The page of a report in a real browser: nothing is cut, nothing is fetched, everything can be read."""

import os
import re

import browser
import pytest

import paceline as pl

pytestmark = pytest.mark.browser
NO_BROWSER = (
    f"NO BROWSER: none of {', '.join(browser.BROWSERS)} is on the PATH, so nobody looks at the page of a report; "
    "`apt-get install chromium` brings one"
)


@pytest.fixture(scope="module", autouse=True)
def a_browser():
    """A developer may do without; where everything is to be checked, a missing browser is an error."""
    if browser.BROWSER is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(NO_BROWSER)


LONG = "a policy with <b>bold</b> & a very long label, without_a_single_place_to_break_it_anywhere_at_all"
TABLES = {
    "one problem": {"policies": ["suak", "thompson", "uniform", "oracle"], "problem": [{"paper": "eight-arms"}]},
    "grids": {
        "policy": [{"name": "one-phase", "grid": {"a": [0.5, 2.0]}}, {"name": "suak", "label": LONG}],
        "problem": [{"paper": "three-arms", "grid": {"budget": [0.4, 0.5]}, "name": LONG}],
    },
    "family": {"policies": ["suak", "uniform"], "problem": [{"family": "bernoulli", "size": 5}]},
}


@pytest.fixture(scope="module", params=TABLES)
def page(request, tmp_path_factory):
    """The page of a small run."""
    table = {"rounds": 300, "trials": 3, "checkpoints": 6, **TABLES[request.param]}
    folder = tmp_path_factory.mktemp("run")
    study = pl.run_experiment(pl.Experiment.from_table(table, name=request.param), folder)
    return next(path for path in study.report() if path.name == "report.html")


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_every_image_is_there_and_nothing_is_fetched(page, width, tmp_path):
    seen = browser.seen(page, tmp_path, width)
    assert seen["width"] == width
    assert seen["needed"] <= width, "the page must be scrolled sideways"
    assert all(left >= -0.5 and right <= width + 0.5 for left, right, _ in seen["boxes"]), "something sticks out"
    assert len(seen["images"]) == page.read_text(encoding="utf-8").count("<img ")
    for complete, natural_width, left, right, height in seen["images"]:
        assert complete
        assert natural_width > 0
        assert right - left >= 250, "too small to be read"
        assert height >= 150
    # Figures stand side by side where there is room, and below each other where there is none.
    assert (len(set(seen["figures"])) < len(seen["figures"])) == (width > 1000)
    assert (seen["fetched"], seen["violations"], seen["console"]) == ([], [], [])
    assert min(browser.contrast(ink, seen["paper"]) for ink in seen["inks"]) >= 4.5


def test_the_page_is_dark_at_night_and_can_be_read(page, tmp_path):
    seen = browser.seen(page, tmp_path, 1280, dark=True)
    assert browser.luminance(seen["paper"]) < 0.1
    assert min(browser.contrast(ink, seen["paper"]) for ink in seen["inks"]) >= 4.5


def test_the_page_can_be_printed(page, tmp_path):
    target = tmp_path / "page.pdf"
    browser.chromium(tmp_path / "profile", f"--print-to-pdf={target}", page.as_uri())
    assert target.read_bytes().startswith(b"%PDF")


def test_the_look_notices_what_is_wrong(page, tmp_path):
    """A page that is too wide, lacks an image and wants one from elsewhere does not get past the checks above."""
    bad = '<img src="data:image/svg+xml,broken" alt=""><img src="https://example.org/x.png" alt=""><i>wide</i>'
    spoilt = tmp_path / "spoilt.html"
    text = page.read_text(encoding="utf-8").replace("<main>", f"<main>{bad}", 1)
    spoilt.write_text(re.sub("<i>", '<i style="display:block;width:2000px">', text), encoding="utf-8")
    seen = browser.seen(spoilt, tmp_path, 390)
    assert seen["needed"] > 390
    assert [natural_width for _, natural_width, *_ in seen["images"]][:2] == [0, 0]
    assert seen["violations"] == ["https://example.org/x.png"]
    assert seen["console"]
