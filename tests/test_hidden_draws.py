"""Draws from generators that all share are found in the code of a policy, wherever they hide in it."""

import random

import numpy as np
import pytest

import paceline as pl
from paceline.policies.rules import check_class

OWN = np.random.default_rng(1)


class InAComprehension(pl.PythonPolicy):
    def choose(self, state):
        return max([int(random.random() * 2) for _ in range(3)])


class InAFunctionWithin(pl.PythonPolicy):
    def choose(self, state):
        def toss():
            return random.getrandbits(1)

        return toss()


class Tossing:
    def toss(self):
        return random.randrange(2)


class Inherited(Tossing, pl.PythonPolicy):
    def choose(self, state):
        return self.toss()


class ImportedWithin(pl.PythonPolicy):
    def choose(self, state):
        import random as chance

        return chance.randrange(2)


class NameImportedWithin(pl.PythonPolicy):
    def choose(self, state):
        from random import randrange

        return randrange(2)


class UnderAnotherName(pl.PythonPolicy):
    def choose(self, state):
        chance = np.random
        return int(chance.randint(2))


class OfTheModule(pl.PythonPolicy):
    def choose(self, state):
        return int(OWN.integers(2))


DRAWS = {
    InAComprehension: ("choose", "random.random"),
    InAFunctionWithin: ("choose", "random.getrandbits"),
    Inherited: ("toss", "random.randrange"),
    ImportedWithin: ("choose", "random.randrange"),
    NameImportedWithin: ("choose", "random.randrange"),
    UnderAnotherName: ("choose", "np.random.randint"),
    OfTheModule: ("choose", "OWN"),
}


@pytest.mark.parametrize("policy", DRAWS, ids=lambda policy: policy.__name__)
def test_hidden_draw_is_found(policy):
    function, drawn = DRAWS[policy]
    rule = r"must draw from \(seed, stream, counter\) or setting.generator\(\) only, got a draw from"
    with pytest.raises(pl.InvalidPolicy, match=rf"\A{policy.__name__}.{function} \(line \d+\) {rule} {drawn}\Z"):
        check_class(policy)


class WithSeeds(pl.PythonPolicy):
    """Generators of its own, and a variable that is called like the module."""

    def reset(self, setting):
        import numpy.random
        import numpy.random as chance
        from numpy.random import default_rng

        self.own = [chance.default_rng(1), default_rng(2), numpy.random.default_rng(3), random.Random(4)]
        random_too = setting.generator()
        self.first = random_too.random()

    def choose(self, state):
        random = self.own[3]
        return random.randrange(2)


def test_generators_with_a_seed_are_nobody_elses():
    check_class(WithSeeds)


def test_code_without_a_module_is_read_too():
    text = "class Typed(pl.PythonPolicy):\n    def choose(self, state):\n        return random.randrange(2)\n"
    names = {"pl": pl, "random": random}
    exec(text, names)
    assert names["Typed"].choose.__module__ is None
    with pytest.raises(pl.InvalidPolicy, match=r"got a draw from random\.randrange"):
        check_class(names["Typed"])
