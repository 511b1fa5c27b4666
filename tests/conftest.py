"""Settings that every test shares."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# The asserts in these modules explain themselves as those in tests do.
pytest.register_assert_rewrite(
    "bookkeeper", "elsewhere", "interrupt", "journals", "pages", "play", "replaying", "worlds"
)

# Derandomized: the same examples in every run, so a red test is red for everyone. No deadline, neither for an
# example nor for the making of one: the first of a test may include a compilation.
AT_LEISURE: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("paceline", derandomize=True, **AT_LEISURE)
settings.register_profile("thorough", max_examples=1000, **AT_LEISURE)
settings.load_profile("paceline")


@pytest.fixture(scope="session")
def postgres():
    """A real PostgreSQL server of the tests' own. A developer without one sees why tests are skipped; CI has one."""
    from benchmarks.postgres import BINARIES, MISSING, Cluster

    if BINARIES is None:
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    cluster = Cluster()
    yield cluster
    cluster.remove()
