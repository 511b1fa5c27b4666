"""What docs/service.md shows is what happens: its curl commands are run against a real service."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from asking import request
from command import succeeded
from service import ADS, serving

from paceline.service.limits import LARGEST_BODY, MOST_BANDITS, MOST_ITEMS, MOST_PENDING, MOST_STREAMS, MOST_WARM
from paceline.service.operations import OPERATIONS

pytestmark = pytest.mark.slow
PAGE = (Path(__file__).parent.parent / "docs" / "service.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```bash\n(.*?)```\n```json\n(.*?)```", PAGE, re.DOTALL)


def same_form(shown, found):
    """Whether an answer has the form of the one that is shown; an arm may be another one, and the reason, too."""
    if isinstance(shown, dict):
        return isinstance(found, dict) and all(name in found and same_form(shown[name], found[name]) for name in shown)
    if isinstance(shown, list):
        return isinstance(found, list) and (not shown or (bool(found) and same_form(shown[0], found[0])))
    if isinstance(shown, str):
        return found is None or isinstance(found, str)
    return type(shown) is type(found) or (isinstance(shown, int | float) and isinstance(found, int | float))


def run(script):
    """Commands of the page, which stop at the first that fails."""
    command = ["bash", "-euo", "pipefail", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_examples_of_the_page_run_as_they_are_shown(tmp_path):
    if shutil.which("curl") is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("NO CURL: nobody runs the examples")
    assert len(EXAMPLES) == 6
    with serving(tmp_path) as process:
        for commands, shown in EXAMPLES:
            script = commands.replace("http://127.0.0.1:8080", process.address)
            assert script != commands
            done = run(script)
            assert done.returncode == 0, (script, done.stderr)
            found = json.loads(done.stdout)
            assert same_form(json.loads(shown), found), (shown, found)


def test_the_python_of_the_page_runs(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    with serving(tmp_path) as process:
        put, _ = EXAMPLES[0]
        made = run(put.replace("http://127.0.0.1:8080", process.address))
        assert '"made":true' in made.stdout, made
        names = {}
        exec(code.replace("http://127.0.0.1:8080", process.address).replace("deadline=0.05", "deadline=10.0"), names)
        assert names["decision"].reason != "service unreachable"


def test_the_numbers_to_watch_are_there(tmp_path):
    with serving(tmp_path) as process:
        assert request(process.address, "/v1/bandits/ads", ADS, "PUT")[0] == 201
        assert request(process.address, "/v1/bandits/ads")[0] == 200  # a picture, in which the pool is
        there = request(process.address, "/metrics")[1].decode()
    named = set(re.findall(r"\bpaceline_[a-z_]+", PAGE))
    assert len(named) >= 5
    assert [name for name in named if f"# TYPE {name} " not in there] == []


def test_the_page_names_every_address_and_limit():
    for operation in OPERATIONS:
        tail = operation.path.rpartition("/")[2]
        assert tail.startswith("{") or f"/{tail}" in PAGE or f"`{tail}`" in PAGE, operation.path
    for limit in (MOST_PENDING, MOST_STREAMS, MOST_BANDITS, MOST_ITEMS, MOST_WARM):
        assert f"{limit:,}" in PAGE
    assert LARGEST_BODY == 1 << 20
    assert "1 MiB" in PAGE


def test_the_unit_and_the_container_call_the_command_with_options_that_it_has():
    shown = succeeded("serve", "--help")
    lines = [line for line in PAGE.splitlines() if re.search(r"paceline\W+serve", line)]
    options = set(re.findall(r"--[a-z][a-z-]+", "\n".join(lines)))
    assert options >= {"--store", "--worker", "--journal-dir", "--host"}
    assert [option for option in options if option not in shown] == []
