"""Does a world in plain Python keep the rules of the form?"""

from paceline.errors import InvalidWorld, PacelineError
from paceline.worlds.python_world import PlayedWorld, PythonWorld

PULLS = 200


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
    first, again = outcomes(world, 1, 0), outcomes(world, 1, 0)
    if first != again:
        name = type(world).__name__
        raise InvalidWorld(
            f"{name} must give the same outcomes for the same seed and stream, got others the second time"
        )


def outcomes(world: PythonWorld, seed: int, stream: int) -> list[tuple[float, tuple[float, ...]]]:
    """What the world yields when its arms are pulled in turn."""
    try:
        lines = world.lines()
        played = PlayedWorld(world, lines, seed, stream)
        return [played.outcome(t, t % lines.arms, t // lines.arms) for t in range(1, PULLS + 1)]
    except InvalidWorld:
        raise
    except PacelineError as error:
        raise InvalidWorld(f"{type(world).__name__}: {error}") from None
