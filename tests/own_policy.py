"""The least that a compiled policy of a user's own declares, for tests that give it a ``choose``."""

from typing import NamedTuple

import paceline as pl
from paceline.policies.policy import learn_nothing


class Params(NamedTuple):
    half: float


class Compiled(pl.Policy):
    name = "mine"
    reasons = ("headroom below the largest cost", "chosen")
    learn = staticmethod(learn_nothing)

    def params(self, setting):
        return Params(0.5)
