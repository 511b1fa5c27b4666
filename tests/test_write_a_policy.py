"""The page on writing policies: its code runs, and the messages that it quotes are the real ones."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from own_policy import Compiled

import paceline as pl
from paceline.policies import Decision

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


def compiled(choose, **declared):
    declared |= {"choose": choose, "__annotations__": {}}
    return dataclass(frozen=True, kw_only=True)(type("Mine", (Compiled,), declared))


def in_python(choose, reset=lambda self, setting: None):
    return type("Mine", (pl.PythonPolicy,), {"choose": choose, "reset": reset})


def unseeded(self, setting):
    self.random = np.random.default_rng()


# The mistakes of the table, in its order.
MISTAKES = [
    compiled(staticmethod(lambda params, state: Decision(7, 1, 0))),
    compiled(staticmethod(lambda params, state: Decision(0, 1, 9)), tag_is_arm=True),
    compiled(staticmethod(lambda params, state: Decision(0, 5, 0))),
    compiled(staticmethod(lambda params, state: (0, 1, 0))),
    compiled(staticmethod(lambda params, state: Decision(int(state.budget), 1, 0))),
    compiled(staticmethod(lambda params, state: Decision(int(np.random.random() * 3), 1, 0))),  # noqa: NPY002
    compiled(staticmethod(lambda self, params, state: Decision(0, 1, 0))),
    in_python(lambda self, state: 1.0),
    in_python(lambda self, state: int(self.random.integers(3)), unseeded),
]
MESSAGES = re.findall(r"^\| [^|]+ \| `(Mine[^`]+)` \|$", PAGE, re.MULTILINE)


def without_numbers_of_lines(message: str) -> str:
    return re.sub(r"\(line \d+\)", "(line)", message)


@pytest.mark.parametrize(("policy", "message"), [*zip(MISTAKES, MESSAGES, strict=True)], ids=MESSAGES)
def test_message_of_a_mistake_is_the_real_one(policy, message):
    with pytest.raises(pl.InvalidPolicy) as refused:
        pl.testing.check_policy(policy(), pl.paper.three_arms())
    told = without_numbers_of_lines(message)
    assert without_numbers_of_lines(str(refused.value)).startswith(told.removesuffix("..."))
