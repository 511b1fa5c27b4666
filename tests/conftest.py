"""Settings that every test shares."""

import os

import pytest
from hypothesis import settings

# The asserts in these modules explain themselves as those in tests do.
pytest.register_assert_rewrite(
    "bookkeeper", "elsewhere", "interrupt", "journals", "pages", "play", "replaying", "worlds"
)

# Derandomized: the same examples in every run, so a red test is red for everyone. No deadline: the first example of a
# test may include a compilation.
settings.register_profile("paceline", derandomize=True, deadline=None)
settings.register_profile("thorough", deadline=None, max_examples=1000)
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
