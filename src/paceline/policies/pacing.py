"""Pacing: when the headroom lets the dear arm of a base be pulled. Shared by the policies of our own."""

import math

from paceline.estimates import Estimates, variance
from paceline.guard import Clock
from paceline.jit import kernel


@kernel
def needed_headroom(clock: Clock, arms: Estimates, cheap: int) -> float:
    """The headroom that a pull of the dear arm must find:  2 - c + B,  or 1 when the cheap arm is the null arm.

    With 2 - c, a pull of the dear arm leaves at least 1 + B whatever it costs. From there the cheap arm is pulled,
    and the headroom is a random walk with drift  d = c - rho  and variance v, those of its cost. It falls by B before
    it climbs with probability about  exp(-2 d B / v)  (Lundberg's exponent), so  B = v / (2 d) log(1 + t d^2 / v)
    makes a refusal by the guard in round t about  v / (d^2 t)  likely: O(log t) rounds are lost to the guard and
    O(log t) money stays unspent. While  t d^2 < v  the drift cannot be told from chance and the walk would not have
    come back anyway; there B is small, and 0 in the limit d = 0, where no buffer helps.
    """
    if cheap == arms.pulls.size:
        return 1.0
    pulls = arms.pulls[cheap]
    drift = clock.budget - arms.cost_mean[cheap]
    buffer = 0.0
    if drift > 0.0 and pulls > 0:
        spread = variance(arms.cost_squares[cheap], arms.cost_mean[cheap], pulls) + 0.25 / pulls
        buffer = spread / (2.0 * drift) * math.log1p(clock.t * drift * drift / spread)
    return 2.0 - clock.budget + buffer
