"""The errors a user can meet. Each message names the thing, the rule and the value."""


class PacelineError(Exception):
    """Base of every error that paceline raises on purpose."""


class InvalidValue(PacelineError, ValueError):
    """A value breaks a stated rule, such as a budget outside (0, 1]."""


class UnknownName(PacelineError, LookupError):
    """A policy, label or choice of that name does not exist."""


class UnknownParameter(PacelineError, TypeError):
    """A policy has no parameter of that name."""


class UnreadableFile(PacelineError, ValueError):
    """A file cannot be read, is damaged, or is not of the expected form."""
