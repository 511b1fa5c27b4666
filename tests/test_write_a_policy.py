"""The page on writing policies: its code runs, and the messages that it quotes are the real ones."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parent.parent / "docs" / "write-a-policy.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_code_of_the_page_runs_from_top_to_bottom(tmp_path, capsys):
    # In a file, as a reader would have it: the compiler reads the sources of the functions.
    file = tmp_path / "page.py"
    file.write_text("\n".join(BLOCKS), encoding="utf-8")
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), {"__name__": "page"})
    assert "forced" in capsys.readouterr().out


def test_every_field_of_the_state_is_explained():
    from paceline.kernels.estimates import Estimates
    from paceline.kernels.state import Scratch, State
    from paceline.policies.policy import Setting

    named = set(re.findall(r"`([a-z_.]+)(?:\(\))?`", PAGE))
    for name in State._fields:
        if name not in {"arms", "clock", "scratch"}:
            assert name in named, name
    assert {f"arms.{name}" for name in Estimates._fields} <= named
    assert {f"scratch.{name}" for name in Scratch._fields} <= named
    assert set(Setting.__dataclass_fields__) <= named
