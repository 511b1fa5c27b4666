"""What a command says when an optional package is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from paceline.errors import PacelineError


@contextmanager
def extra(name: str, *packages: str) -> Iterator[None]:
    """Import what an extra brings; without it, say how to get it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in packages:
            raise
        raise PacelineError(f'this needs packages that are not installed: pip install "paceline[{name}]"') from None
