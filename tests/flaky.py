"""A store that fails when it is told to: before a call has happened, or after it has."""

from paceline.errors import StoreFailed


class FlakyStore:
    """Passes everything on to another store."""

    def __init__(self, store):
        self.store = store
        self.fails = None  # or "before", or "after"

    def __getattr__(self, name):
        call = getattr(self.store, name)

        def passed_on(*arguments, **keywords):
            if self.fails == "before":
                raise StoreFailed("the store is gone")
            found = call(*arguments, **keywords)
            if self.fails == "after":
                raise StoreFailed("the answer is lost")
            return found

        return passed_on


def flaky(store):
    """The same, and a store to whoever asks."""
    from paceline.fleet.store import Store

    kind = type("Flaky", (FlakyStore, Store), {"__abstractmethods__": frozenset()})
    for name in Store.__abstractmethods__:
        setattr(kind, name, property(lambda self, name=name: FlakyStore.__getattr__(self, name)))
    kind.__abstractmethods__ = frozenset()
    return kind(store)
