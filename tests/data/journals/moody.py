"""A policy of the user's that fails now and then."""

import paceline as pl


class Moody(pl.PythonPolicy):
    """Pulls the arms in turn, and fails every 25th time that it is asked."""

    def __init__(self):
        self.calls = 0

    def choose(self, state):
        self.calls += 1
        if self.calls % 25 == 0:
            raise RuntimeError("not today")
        return self.calls % len(state.arms.pulls)
