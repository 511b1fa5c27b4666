"""Several resources under the index pacer: the best base of drawn means, steered, and looks at arms it starves."""

import math

from paceline.kernels.jit import kernel
from paceline.kernels.state import Decision, State, steering_in
from paceline.policies.common_prior import Floats, Lows
from paceline.policies.imed import SHARE, pulls_made
from paceline.policies.pacing import REASONS, affords
from paceline.policies.score_draws import draw_related
from paceline.policies.steering import find_base, follow_base

LOOKS = 0.25  # at an arm that its base leaves no headroom for, times log t
EXPLORED = len(REASONS)


@kernel
def neglected_arm(state: State, needed: Floats, resources: tuple[int, ...]) -> int:
    """The arm with the fewest pulls that its base leaves no headroom for; -1 if all of those had  log(t) / 4  pulls.

    Where largest costs differ, a base of small ones needs little headroom, and whatever comes in is spent before an arm
    of larger ones is covered, however often it is drawn. As with one resource, nothing is kept for an arm of which one
    pull may take more than a share of the income so far.
    """
    found, fewest = -1, LOOKS * math.log(state.clock.t)
    for i in range(state.pending.size):
        if pulls_made(state, i) < fewest:
            is_covered, is_cheap = True, True
            for d in range(len(resources)):
                if state.largest[i, d] > needed[d]:
                    is_covered = False
                    is_cheap = is_cheap and state.largest[i, d] <= SHARE * state.rate[d] * state.clock.t
            if is_cheap and not is_covered:
                found, fewest = i, float(pulls_made(state, i))
    return found


@kernel
def steer_drawn(state: State, lows: Lows) -> Decision:
    """The arm that is due under the best base for drawn means; an arm that it leaves no room for is saved up for.

    Every stock can hold a pull of every arm (caps below a largest cost are refused), so the saving comes to an end.
    """
    draw_related(lows, state)
    find_base(state, state.memory.spreads)
    needed = steering_in(state.scratch, state.resources).needed
    arm = neglected_arm(state, needed, state.resources)
    if arm >= 0:
        if affords(state, arm):
            return Decision(arm, EXPLORED, arm)
        for d in range(len(state.resources)):
            needed[d] = max(needed[d], state.largest[arm, d] + state.rate[d])
    return follow_base(state)
