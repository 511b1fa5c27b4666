"""Does a world in plain Python keep the rules of the form?"""

from collections.abc import Iterator
from contextlib import contextmanager

from paceline.errors import InvalidWorld, PacelineError, in_one_line
from paceline.worlds.python_world import PlayedWorld, PythonWorld

PULLS = 200
SEED, STREAM = 1, 0


def check_world(world: PythonWorld) -> None:
    """Raise `InvalidWorld` unless outcomes are in range, and the same for the same seed and stream.

    >>> class Fair(PythonWorld):
    ...     arms, budget = 2, 0.5
    ...     def outcome(self, t, arm, count):
    ...         return 0.5, 0.25
    >>> check_world(Fair())
    """
    if not isinstance(world, PythonWorld):
        raise InvalidWorld(f"a world must be an object of a class derived from PythonWorld, got {world!r}")
    name = type(world).__name__
    with in_the_name_of(name):
        lines = world.lines()
        one, other = PlayedWorld(world, lines, SEED, STREAM), PlayedWorld(world, lines, SEED, STREAM)
    first = outcomes(one)
    rule = f"{name} must give the same outcomes for the same seed and stream"
    if outcomes(other) != first:
        raise InvalidWorld(f"{rule}, got others the second time")
    with in_the_name_of(name):
        one.world.reset(SEED, STREAM)
    if outcomes(one) != first:
        raise InvalidWorld(f"{rule}, got others after reset: does it forget everything?")


def outcomes(played: PlayedWorld) -> list[tuple[float, tuple[float, ...]]]:
    """What a world yields when its arms are pulled in turn."""
    found = []
    for pull in range(PULLS):
        count, arm = divmod(pull, played.lines.arms)
        with in_the_name_of(f"{played.name}: outcome of arm {arm} in round {pull + 1}"):
            found.append(played.outcome(pull + 1, arm, count))
    return found


@contextmanager
def in_the_name_of(thing: str) -> Iterator[None]:
    """Let every error be one line about a world."""
    try:
        yield
    except InvalidWorld:
        raise
    except PacelineError as error:
        raise InvalidWorld(f"{thing}: {error}") from None
    except Exception as error:
        raise InvalidWorld(f"{thing} must raise no errors, but: {in_one_line(error)}") from error
