"""The documents as a site: what can be known without building it. `.ci/run` builds it, with warnings as errors."""

import doctest
import re
import runpy
from pathlib import Path

import pytest

import paceline

DOCS = Path(__file__).parent.parent / "docs"
TOOLS = DOCS / "tools"


def words(text: str) -> list[str]:
    """Versions of Python differ in where they break the lines of a help."""
    return text.split()


def links(page: Path) -> set[Path]:
    """Pages that a page links to, in its text, on cards, or by its table of contents, which is in the site's margin."""
    text = page.read_text(encoding="utf-8")
    names = re.findall(r"\]\(([^)#:]+)\.md(?:#[^)]*)?\)", text) + re.findall(r"^:link: (\S+)$", text, re.MULTILINE)
    for contents in re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL):
        names += [line for line in contents.split() if not line.startswith(":")]
    return {path for name in names if (path := (page.parent / f"{name}.md").resolve()).exists()}


def clicks_from_the_front_page() -> dict[Path, int]:
    """How many clicks away each page is."""
    clicks, at = {DOCS / "index.md": 0}, [DOCS / "index.md"]
    while at:
        page = at.pop(0)
        for target in sorted(links(page) - clicks.keys()):
            if target.is_relative_to(DOCS):
                clicks[target] = clicks[page] + 1
                at.append(target)
    return clicks


def test_the_page_of_the_command_line_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR"):
        monkeypatch.setenv(name, "")  # the tool sets them; this puts them back
    generated = runpy.run_path(str(TOOLS / "command_line.py"))["page"]()
    assert words(generated) == words((DOCS / "command-line.md").read_text(encoding="utf-8")), (
        "python docs/tools/command_line.py"
    )


def test_every_public_name_is_in_the_reference() -> None:
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^   ([A-Za-z0-9_.]+)$", text, re.MULTILINE)
    assert len(listed) == len(set(listed))
    modules = {"gym", "paper", "problems", "testing", "theory"}
    assert {name for name in listed if "." not in name} == set(paceline.__all__) - modules
    assert {part for name in listed if "." in name for part in name.split(".")[:-1]} == modules


def test_docstrings_are_translated_as_their_own_example_says() -> None:
    names = runpy.run_path(str(TOOLS / "docstrings.py"))
    example = doctest.DocTestParser().get_doctest(names["__doc__"], names, "docstrings", None, None)
    assert doctest.DocTestRunner().run(example) == (0, len(example.examples))


def test_what_strangers_come_for_is_on_the_front_page() -> None:
    clicks = clicks_from_the_front_page()
    for page in ("write-a-policy.md", "experiments.md", "service.md", "fleet.md"):
        assert clicks[DOCS / page] == 1
    assert max(clicks.values()) == 2
    assert set(clicks) == {*DOCS.glob("*.md"), *DOCS.glob("notebooks/*.md")}
