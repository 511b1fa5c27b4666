"""A change of the books and its line in the journal: both or neither."""

from types import TracebackType

from paceline.errors import InvalidPolicy, JournalFailed, PacelineError

CUT_SHORT = (JournalFailed, InvalidPolicy)  # errors that come when something has changed already


class Change:
    """To be entered around every change.

    If anything but a refusal comes in between (an interrupt, a full disk, a mistake of a policy), the books may not be
    what the journal says. Then nothing more may happen to them.
    """

    def __init__(self) -> None:
        self.unsure = False
        self.closed = False

    def check(self) -> None:
        """Refuse to go on without a journal, or after a change that was cut short."""
        if self.closed:
            raise JournalFailed("this bandit was closed; it must be opened again with Bandit.open")
        self.check_books()

    def check_books(self) -> None:
        """Refuse to look at books that may be half changed."""
        if self.unsure:
            raise JournalFailed("a call was cut short; the bandit must be opened again with Bandit.open, or loaded")

    def __enter__(self) -> None:
        if self.closed or self.unsure:
            self.check()
        self.unsure = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.unsure = kind is not None and (kind in CUT_SHORT or not issubclass(kind, PacelineError))
