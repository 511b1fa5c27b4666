"""Every example runs as its reader would run it, and says what the documents say it does."""

import re
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
STORIES = sorted(path for path in EXAMPLES.glob("*.py") if "def main()" in path.read_text(encoding="utf-8"))


def run(story: Path, out: Path) -> str:
    """What an example prints; it must be content, and have nothing to say on the side."""
    done = subprocess.run(
        [sys.executable, story, "--out", out], cwd=out, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> "Printed":
    return Printed(tmp_path_factory)


class Printed:
    """The output of the first run of each example, and where its figure is."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self.factory = factory
        self.of = cache(self._of)

    def _of(self, name: str) -> tuple[str, Path]:
        out = self.factory.mktemp(name)
        return run(EXAMPLES / f"{name}.py", out), out


def number(pattern: str, text: str) -> float:
    """The number in the only place that looks like this."""
    (found,) = re.findall(pattern, text, re.MULTILINE)
    return float(found.replace(",", ""))


def test_there_are_six() -> None:
    names = [story.stem for story in STORIES]
    assert names == ["ad_pacing", "clinical_trial", "hiv_incentives", "inventory", "llm_gateway", "satellite"]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.stem)
def test_runs_draws_and_does_so_again(story: Path, printed: Printed, tmp_path: Path) -> None:
    text, out = printed.of(story.stem)
    assert re.search(r"^promise kept .* <= ", text, re.MULTILINE)
    name = f"example-{story.stem.replace('_', '-')}.png"
    assert [path.name for path in out.iterdir()] == [name]
    image = (out / name).read_bytes()
    assert image.startswith(b"\x89PNG\r\n\x1a\n")
    assert image.endswith(b"IEND\xaeB`\x82")
    width, height = struct.unpack(">II", image[16:24])
    assert 900 <= width <= 2000
    assert 500 <= height <= 1600
    assert 10_000 < len(image) < 200_000
    assert run(story, tmp_path) == text


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.stem)
def test_page_shows_its_figure_and_its_command(story: Path) -> None:
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    name = f"example-{story.stem.replace('_', '-')}.png"
    assert f"](images/{name})" in page
    assert f"python examples/{story.name}" in page
    assert (ROOT / "docs" / "images" / name).stat().st_size < 200_000


def figures(text: str) -> set[float]:
    """The numbers of three digits or more."""
    found = (one.replace(",", "").replace("_", "") for one in re.findall(r"\d[\d,_]*(?:\.\d+)?", text))
    return {float(one) for one in found if len(one.replace(".", "")) >= 3}


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.stem)
def test_page_says_what_the_example_prints(story: Path, printed: Printed) -> None:
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    (part,) = (part for part in page.split("\n## ") if f"`python examples/{story.name}`" in part)
    said = re.sub(r"\(Thornton.*?\)\)", "", part, flags=re.DOTALL)
    said = re.sub(r"\]\(images/.*", "", said)
    seen = figures(printed.of(story.stem)[0])
    settings = figures(story.read_text(encoding="utf-8"))
    strange = {one for one in figures(said) - settings if not any(abs(one - other) <= 0.01 * one for other in seen)}
    assert not strange  # another machine may round otherwise, and see a little more or less


def test_ad_pacing(printed: Printed) -> None:
    text, _ = printed.of("ad_pacing")
    credited = number(r"([\d.]+) dollars credited", text)
    for policy in ("index", "index without a period", "uniform"):
        assert 0.95 * credited < number(rf"^{policy}: \d+ clicks for ([\d.]+) dollars", text) <= credited
    pacer = number(r"^index: (\d+) clicks", text)
    assert pacer > 1.2 * number(r"^uniform: (\d+) clicks", text)
    assert pacer > 1.04 * number(r"^index without a period: (\d+) clicks", text)
    missed, for_good = (
        int(n) for n in re.findall(r"late or lost: (\d+), bids charged in full for good: (\d+)", text)[0]
    )
    assert 0 < for_good < missed  # some late notices put the charge right


def test_inventory(printed: Printed) -> None:
    text, _ = printed.of("inventory")
    assert number(r"^index: ([\d,]+) euros", text) > 1.1 * number(r"^uniform: ([\d,]+) euros", text)
    assert min(float(bags) for bags in re.findall(r"on the shelf: ([\d.-]+) at least", text)) >= 0
    phases = re.findall(r": index ([\d.]+), uniform ([\d.]+), best mix ([\d.]+)", text)
    assert len(phases) == 3
    for pacer, uniform, best in phases:
        assert float(uniform) < float(pacer) < 1.03 * float(best)  # the standard error of 4,000 visitors is 1.6 %
        assert float(pacer) > 0.95 * float(best)


def test_clinical_trial(printed: Printed) -> None:
    text, _ = printed.of("clinical_trial")
    assert number(r"^index: ([\d,]+) successes", text) > 1.1 * number(r"^uniform: ([\d,]+) successes", text)
    assert len(re.findall(r"paused: combination in week \d+$", text, re.MULTILINE)) == 3
    granted = number(r"([\d,]+) euros granted", text)
    books = re.findall(r"([\d,]+) euros spent and ([\d,]+) reserved", text)
    assert len(books) == 3
    for amounts in books:
        assert 0.9 * granted < sum(float(amount.replace(",", "")) for amount in amounts) <= granted
    assert min(int(n) for n in re.findall(r"at most (\d+) patients open", text)) > 100


def test_satellite(printed: Printed) -> None:
    text, _ = printed.of("satellite")
    pacer = number(r"^index: (\d+) points", text)
    assert pacer > 1.15 * number(r"^uniform: (\d+) points", text)
    assert pacer > 1.15 * number(r"^index without a period: (\d+) points", text)
    assert min(float(n.replace(",", "")) for n in re.findall(r"lowest battery ([\d,-]+) joules", text)) >= 0
    assert "15 bytes after line" in text
    assert "decisions from there are those of a mission without a restart" in text


def test_llm_gateway(printed: Printed) -> None:
    text, _ = printed.of("llm_gateway")
    grades, refused = (
        {name: float(value.replace(",", "")) for name, value in re.findall(pattern, text, re.MULTILINE)}
        for pattern in (r"^(.+): mean grade ([\d.]+)", r"^(.+): mean grade .* by the provider ([\d,]+)$")
    )
    assert list(grades) == ["index, both budgets", "uniform, both budgets", "index, dollars alone"]
    assert grades["index, both budgets"] > 1.05 * grades["uniform, both budgets"]
    assert grades["index, both budgets"] > 1.5 * grades["index, dollars alone"]
    # With both lines kept the provider never has to say no; with one of them it does.
    assert refused["index, both budgets"] == refused["uniform, both budgets"] == 0
    assert refused["index, dollars alone"] > 1000
    for spent, line in re.findall(r"([\d.]+) of ([\d.]+) dollars spent", text):
        assert float(spent) <= float(line)
    assert min(float(n.replace(",", "")) for n in re.findall(r"least tokens ([\d,-]+)", text)) >= 0


def test_hiv_incentives(printed: Printed) -> None:
    from causaldata import thornton_hiv

    text, _ = printed.of("hiv_incentives")
    data = thornton_hiv.load_pandas().data.dropna(subset=["tinc", "got", "villnum"])
    assert number(r"^([\d,]+) persons", text) == len(data) == 2830
    parts = [data[data["villnum"] < 100], data[data["villnum"] >= 100]]
    none = sum(len(part) / len(data) * part.loc[part["tinc"] == 0, "got"].mean() for part in parts)
    assert number(r"^none +\d+ +([\d.]+) ", text) == pytest.approx(none, abs=5e-4)
    lines = re.findall(r"index ([\d.]+) \[([\d.]+), ([\d.]+)\], uniform ([\d.]+) .*best mix ([\d.]+),", text)
    assert len(lines) == 7
    for line in lines:
        pacer, low, high, uniform, best = map(float, line)
        assert low < pacer < high
        assert uniform < pacer <= best < pacer + 4  # as printed; with next to no money there is one thing to do
