"""Random words and numbers as pure functions of (seed, stream, counter). No generator, no state.

Philox4x64-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011): a block of four
64-bit words from a 128-bit key and a 256-bit counter. NumPy ships the same generator; the tests compare word for word.

Here the key is (seed, stream), with one stream per trial, and the counter is (count, lane, purpose, attempt).
"""

import math
from typing import Any

import numpy as np

from paceline.kernels.jit import high_product, kernel

Word = Any  # an unsigned 64-bit integer: np.uint64 in Python, uint64 in machine code

# What a block is for. Outcomes and decisions never share a block, so a policy's own draws cannot shift the world's.
OUTCOME = np.uint64(0)
DECISION = np.uint64(1)
GENERATOR = np.uint64(2)  # draws of a plain-Python policy, one after the other
DELAY = np.uint64(3)

FIRST_MULTIPLIER = np.uint64(0xD2E7470EE14C6C93)
SECOND_MULTIPLIER = np.uint64(0xCA5A826395121157)
FIRST_WEYL = np.uint64(0x9E3779B97F4A7C15)
SECOND_WEYL = np.uint64(0xBB67AE8584CAA73B)
HALF_STEP = 2.0**-53
SHIFT = np.uint64(12)
HALF = np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)


@kernel
def block(
    seed: Word, stream: Word, count: Word, lane: Word, purpose: Word, attempt: Word
) -> tuple[Word, Word, Word, Word]:
    """Four random words: the Philox4x64-10 block of key (seed, stream) at counter (count, lane, purpose, attempt)."""
    a, b, c, d = count, lane, purpose, attempt
    for _ in range(10):
        high_a = high_product(FIRST_MULTIPLIER, a)
        low_a = FIRST_MULTIPLIER * a
        high_c = high_product(SECOND_MULTIPLIER, c)
        low_c = SECOND_MULTIPLIER * c
        a, b, c, d = high_c ^ b ^ seed, low_c, high_a ^ d ^ stream, low_a
        seed = seed + FIRST_WEYL
        stream = stream + SECOND_WEYL
    return a, b, c, d


@kernel
def uniform(word: Word) -> float:
    """A number in the open interval (0, 1), symmetric about 1/2: the middle of one of 2**52 equal cells."""
    return (2.0 * float(word >> SHIFT) + 1.0) * HALF_STEP


@kernel
def decision_uniform(seed: Word, stream: Word, count: int) -> float:
    """The uniform number that a policy may use in round ``count``."""
    word, _, _, _ = block(seed, stream, np.uint64(count), np.uint64(0), DECISION, np.uint64(0))
    return uniform(word)


@kernel
def beta_below_one(a: float, b: float, low: float, high: float, u: float, v: float) -> float:
    """One attempt at a draw of Beta(a, b), b <= min(a, 1), from two uniforms; -1 when rejected.

    Algorithm BC of Cheng, "Generating beta variates with nonintegral shape parameters" (CACM 21, 1978), with
    delta = 1 + a - b,  low = delta (1/72 + b/24) / (a/b - 7/9)  and  high = 1/4 + (1/2 + 1/(4 delta)) b.  It serves the
    densities that have a pole; see beta.py for the bounded ones, where a table is several times faster.
    """
    z = u * u * v
    if u < 0.5:
        y = u * v
        if 0.25 * v + z - y >= low:
            return -1.0
    elif z > 0.25 and z >= high:
        return -1.0
    # Beyond 700 the odds would overflow; the draw is 1 to the last bit long before.
    logit = min(math.log(u / (1.0 - u)) / b, 700.0)
    odds = a * math.exp(logit)
    if u >= 0.5 and z <= 0.25:
        return odds / (b + odds)
    if (a + b) * (math.log((a + b) / (b + odds)) + logit) - 1.3862943611198906 < math.log(z):
        return -1.0
    return odds / (b + odds)


@kernel
def half_uniforms(word: Word) -> tuple[float, float]:
    """Two numbers in (0, 1) from the halves of a word, each the middle of one of 2**32 equal cells."""
    return (float(word >> HALF) + 0.5) * 2.0**-32, (float(word & LOW_HALF) + 0.5) * 2.0**-32
