"""The table of strips covers the density it is made for: the condition for its draws to be exact."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import stats

from paceline.kernels.beta import LEFT, STRIPS, SURE, TOP, WIDTH, beta_density, height, strip_sample, strips_of
from paceline.kernels.jit import plain
from paceline.problems.distributions import Beta

ROUNDING = 1e-9
# Where along a strip the density is looked at; the edges are among them.
ALONG = np.linspace(0.0, 1.0, 9)

parameters = st.floats(1.0, 500.0) | st.sampled_from([1.0, 1.0 + 1e-12, 1.5, 2.0, 3.0, 7.0])


@st.composite
def shapes(draw):
    """Parameters (a, b) of bounded densities, rounded as Beta rounds them: no others get a table."""
    a, b = draw(parameters), draw(parameters)
    shape = Beta(a / (a + b), a + b).shape
    assume(min(shape) >= 1.0)
    return shape


def assert_covers(shape):
    """Strips side by side from 0 to 1, of equal area, each above the density, and nowhere too sure of it."""
    density = beta_density(*shape)
    table = strips_of(density)
    table = table[np.argsort(table[:, LEFT])]
    left, width, top, sure = table[:, LEFT], table[:, WIDTH], table[:, TOP], table[:, SURE]

    assert left[0] == 0.0
    assert (left + width)[-1] == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_allclose((left + width)[:-1], left[1:], atol=1e-15)
    # Edges are floats below 1, so a strip's width is off by up to 2**-53 however narrow it is.
    np.testing.assert_allclose(width * top, width[0] * top[0], rtol=ROUNDING + 2**-52 / width.min())

    points = np.minimum(left[:, None] + width[:, None] * ALONG, 1.0)
    heights = np.array([plain(height)(density, x) for x in points.ravel()]).reshape(points.shape)
    assert (heights <= top[:, None] * (1 + ROUNDING)).all()
    assert (heights >= sure[:, None] * (1 - ROUNDING)).all()
    return table


@given(shape=shapes())
@example(shape=(1.0, 1.0))
@example(shape=(1.0, 500.0))
@example(shape=(500.0, 1.0))
def test_table_covers_the_density(shape):
    assert STRIPS <= len(assert_covers(shape)) < 1.1 * STRIPS


@pytest.mark.parametrize("mean", [0.001, 0.3, 0.5, 0.999])
@pytest.mark.parametrize("concentration", [1e4, 1e6])
def test_table_covers_a_narrow_density(mean, concentration):
    assert STRIPS <= len(assert_covers(Beta(mean, concentration).shape)) < 1.1 * STRIPS


@pytest.mark.parametrize("shape", [(1.0, 1e4), (1e4, 1.0), (1.0 + 1e-9, 1e4), (1.001, 1e5), (1.5, 1e6), (1e6, 1.5)])
def test_table_covers_a_narrow_density_at_an_end(shape):
    assert STRIPS <= len(assert_covers(shape)) < 1.1 * STRIPS


@given(shape=shapes(), x=st.floats(0, 1))
def test_height_is_the_density_scaled_to_1_at_the_mode(shape, x):
    density = beta_density(*shape)
    law = stats.beta(*shape)
    assert plain(height)(density, density.mode) == pytest.approx(1.0)
    expected = np.exp(law.logpdf(x) - law.logpdf(density.mode))
    assert plain(height)(density, x) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(shape=shapes(), u=st.floats(2**-53, 1 - 2**-53), v=st.floats(2**-53, 1 - 2**-53))
@example(shape=(1.0, 1.0), u=1 - 2**-53, v=2**-53)
@example(shape=(2.0, 5.0), u=1 - 2**-53, v=2**-53)
@example(shape=(2.0, 5.0), u=2**-53, v=2**-53)
def test_a_draw_is_in_the_unit_interval_or_rejected(shape, u, v):
    density = beta_density(*shape)
    table = strips_of(density)
    x = plain(strip_sample)(density, table, 0, len(table), u, v)
    assert x == -1.0 or 0.0 <= x <= 1.0


def test_a_draw_reads_its_own_part_of_a_common_table():
    first, second = beta_density(2.0, 5.0), beta_density(30.0, 3.0)
    tables = strips_of(first), strips_of(second)
    together = np.concatenate(tables)
    for u in np.linspace(0.001, 0.999, 100):
        alone = plain(strip_sample)(second, tables[1], 0, len(tables[1]), u, 0.5)
        assert plain(strip_sample)(second, together, len(tables[0]), len(tables[1]), u, 0.5) == alone


# In a process of its own, with an end to its patience and memory: a wrong area means an endless table.
TABLE_OF_ANY_CONCENTRATION = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
from paceline.problems.distributions import Beta
from paceline.errors import InvalidValue
from paceline.worlds.stationary import world_of
from paceline.problems.problem import Problem
try:
    beta = Beta(0.3, float(sys.argv[1]))
except InvalidValue:
    print(0)
else:
    print(len(world_of(Problem([beta], [beta], 0.5)).data.strips) // 2)
"""


@pytest.mark.parametrize("concentration", ["1e12", "1e15", "1e18", "1e300"])
def test_any_concentration_is_refused_or_has_a_small_table(concentration):
    command = [sys.executable, "-c", TABLE_OF_ANY_CONCENTRATION, concentration]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=15, check=False)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < 1.1 * STRIPS
