"""The JSON schema of experiment files: it takes what the readers take, and refuses what they do not know."""

import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest
from studies import EIGHT_ARMS, SMALL

import paceline as pl
from paceline import cli
from paceline.experiments.spec import experiment_schema
from paceline.paper.instances import figure_file
from paceline.policies import POLICIES
from paceline.problems.families import KINDS

DOCS = Path(__file__).parent.parent / "docs" / "experiments.md"


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft7Validator:
    jsonschema.Draft7Validator.check_schema(experiment_schema())
    return jsonschema.Draft7Validator(experiment_schema())


def good() -> dict[str, dict[str, object]]:
    """Tables that are run somewhere: in tests, in the package, in the documents."""
    found = {"small": SMALL, "eight arms": EIGHT_ARMS}
    found |= {f"figure {number}": figure_file(number) for number in (1, 2)}
    found["comparison"] = pl.compare("beta", ["uniform", pl.SUAK(order="first")], rounds=10, trials=1).manifest["file"]
    labels = {"name": "one-phase", "grid": {"label": ["x", "y"]}}
    found["labels"] = pl.Experiment.from_table({**SMALL, "policies": [], "policy": [labels]}).table
    found["given"] = pl.compare([pl.paper.three_arms()], "uniform", rounds=10, trials=1, delay=5).manifest["file"]
    for number, text in enumerate(re.findall(r"```toml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)):
        found[f"docs {number}"] = {"problem": [], "policies": [], **tomllib.loads(text)}
    return found


def test_what_is_run_is_valid(validator):
    tables = good()
    assert len(tables) >= 8
    for name, table in tables.items():
        assert [error.message for error in validator.iter_errors(table)] == [], name


def test_every_policy_and_every_family_can_be_completed():
    properties = experiment_schema()["properties"]
    policies = properties["policy"]["items"]["anyOf"]
    assert [each["properties"]["name"].get("const") for each in policies] == [*POLICIES, None]
    assert policies[list(POLICIES).index("suak")]["properties"]["order"] == {"default": "fewest", "type": "string"}
    sources = [each["properties"] for each in properties["problem"]["items"]["anyOf"]]
    assert [keys["family"]["enum"] for keys in sources if "family" in keys] == [list(KINDS)]


def test_the_command_prints_it(capsys):
    assert cli.main(["run", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(experiment_schema()))
    assert cli.main(["run"]) == 2
    assert "takes a TOML file or the folder of a run, got neither" in capsys.readouterr().err
