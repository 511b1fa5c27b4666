"""The errors a user can meet. Each message names the thing, the rule and the value."""


class PacelineError(Exception):
    """Base of every error that paceline raises on purpose."""


def in_one_line(error: BaseException) -> str:
    r"""The kind of an error of somebody else's and its text.

    >>> in_one_line(ValueError("two\nlines"))
    'ValueError: two lines'
    """
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


class InvalidValue(PacelineError, ValueError):
    """A value breaks a stated rule, such as a budget outside (0, 1]."""


class UnknownName(PacelineError, KeyError):
    """A policy, label or choice of that name does not exist."""

    def __str__(self) -> str:
        """The message as it is; a KeyError would put it in quotes."""
        return str(self.args[0])


class UnknownParameter(PacelineError, TypeError):
    """A policy has no parameter of that name."""


class InvalidPolicy(PacelineError, ValueError):
    """The code of a policy breaks a rule of the form, such as choosing an arm that does not exist."""


class InvalidWorld(PacelineError, ValueError):
    """A world yields what it must not, such as a cost above the largest."""


class UnreadableFile(PacelineError, ValueError):
    """A file cannot be read, is damaged, or is not of the expected form."""


class Conflict(PacelineError):
    """News that contradicts what was told before, such as another cost for the same decision."""


class JournalInUse(PacelineError):
    """Another process, or another Bandit, has the journal open."""


class JournalFailed(PacelineError):
    """The journal could not be written; the bandit stops rather than act on what would be lost."""


class UnknownFleet(UnknownName):
    """The store has no fleet of that name."""


class FleetExists(PacelineError):
    """A fleet of that name is there already, with other settings."""


class StoreFailed(PacelineError):
    """The store cannot be reached, or could not do what it was asked for."""
