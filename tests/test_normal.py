"""The normal quantile and the uniforms that feed it, against SciPy."""

import numpy as np
import pytest
from scipy import stats

from paceline.kernels.jit import plain
from paceline.kernels.normal import normal
from paceline.kernels.random import half_uniforms

quantile = plain(normal)


@pytest.mark.parametrize("low", [0.0, 0.075, 1e-6, 1e-12, 1e-30, 1e-300])
def test_equals_scipy(low):
    # Around the seams at 0.075 and exp(-25) and far out in either tail.
    for u in np.geomspace(max(low, 1e-310) / 3, min(3 * max(low, 1e-310), 0.5), 400):
        assert quantile(float(u)) == pytest.approx(stats.norm.ppf(u), rel=2e-14, abs=1e-15)
        if 1.0 - u < 1.0:
            assert quantile(float(1.0 - u)) == pytest.approx(stats.norm.ppf(1.0 - u), rel=2e-14, abs=1e-15)


def test_is_odd_about_a_half_and_grows():
    u = np.linspace(0.001, 0.999, 999)
    values = np.array([quantile(float(each)) for each in u])
    assert (np.diff(values) > 0).all()
    np.testing.assert_allclose(values, -values[::-1], rtol=1e-12, atol=1e-12)


def test_compiled_is_the_same():
    for u in (1e-300, 1e-12, 0.01, 0.3, 0.5, 0.9, 0.999999):
        assert normal(u) == quantile(u)


@pytest.mark.parametrize("word", [0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1])
def test_halves_of_a_word_are_inside_the_open_interval(word):
    high, low = plain(half_uniforms)(np.uint64(word))
    assert (high, low) == ((word // 2**32 + 0.5) / 2**32, (word % 2**32 + 0.5) / 2**32)
    assert min(high, low) > 0
    assert max(high, low) < 1
