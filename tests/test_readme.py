"""What the README shows is what happens."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize(
    "page",
    [
        ROOT / "README.md",
        *(ROOT / "docs" / f"{name}.md" for name in ("start-researcher", "start-engineer", "live", "fleet", "recipes")),
        ROOT / "docs" / "history.md",
    ],
    ids=lambda page: page.name,
)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    codes = blocks("python", page.read_text(encoding="utf-8"))
    assert codes
    names: dict[str, object] = {}  # a page is read from top to bottom
    for code in codes:
        exec(compile(code, page.name, "exec"), names)


def test_eight_line_examples_have_at_most_eight_lines() -> None:
    examples = blocks("python")
    for example in examples[:2]:  # those that are announced as such
        assert len([line for line in example.splitlines() if line.strip()]) <= 8


def test_ci_calls_the_test_command_of_the_readme() -> None:
    (commands,) = blocks("console")
    _, test_command = commands.strip().splitlines()
    assert test_command in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_ci_runs_what_the_test_command_leaves_out() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        options = tomllib.load(file)["tool"]["pytest"]["ini_options"]
    lanes = [marker.partition(":")[0] for marker in options["markers"]]
    assert options["addopts"][-2:] == ["-m", " and ".join(f"not {lane}" for lane in lanes)]
    assert f'pytest -m "{" or ".join(lanes)}"' in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_table_of_policies_lists_every_policy() -> None:
    from paceline.policies import POLICIES

    listed = re.findall(r"^\| `([a-z0-9-]+)` \| `pl\.(\w+)`", README, re.MULTILINE)
    assert listed == [(name, policy.__name__) for name, policy in POLICIES.items()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []
