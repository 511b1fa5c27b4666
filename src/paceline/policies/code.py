"""The code of a policy or a world of the user's own, as a digest: what its results depend on besides its name."""

import sys

from paceline.kernels.jit import digest_of, outside_sources, package_digest
from paceline.objects import attributes, in_words
from paceline.policies.policy import Policy
from paceline.sources import own_sources

DIGITS = 16


def code_digest(policy: object) -> str | None:
    """Digits for the user's files behind a policy or a world, and for its parameters; None for one of paceline.

    >>> from paceline import SUAK
    >>> code_digest(SUAK()) is None
    True
    """
    texts = code_of(policy)
    return digest_of(DIGITS, *texts, in_words(attributes(policy))) if texts else None


def code_of(policy: object) -> set[str]:
    """The user's files and functions behind a policy or a world; none for one of paceline."""
    kinds = [kind for kind in type(policy).__mro__ if kind.__module__.partition(".")[0] not in {"paceline", "builtins"}]
    if not kinds:
        return set()
    files = own_sources(kind.__module__ for kind in kinds)
    typed = [kind for kind in kinds if not hasattr(sys.modules.get(kind.__module__), "__file__")]
    functions = [getattr(kind, name) for kind in typed for name, value in vars(kind).items() if is_function(value)]
    return {*files, *outside_sources(functions)}


def is_function(value: object) -> bool:
    """Whether an entry of a class is a function of its objects, or one that it was given."""
    return callable(value) and not isinstance(value, type)


def digest_of_code(policy: Policy) -> str:
    """Digits for the code behind a policy, the user's or paceline's own; its parameters do not count."""
    texts = code_of(policy)
    return digest_of(DIGITS, *texts) if texts else package_digest()
