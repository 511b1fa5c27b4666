"""The last decisions of this process with their reasons, and what has become of them: for the page and for "why"."""

from collections import deque
from itertools import islice
from typing import Any, NamedTuple

from paceline.live.decision import Decision
from paceline.service.limits import LOGGED

MORE = Decision._fields[4:]
NO_MORE = (None,) * len(MORE)
ASK, TELL, CANCEL, EXPIRE = "ask", "tell", "cancel", "expire"


class News(NamedTuple):
    """What was said of a decision, and what became of it."""

    event: str
    time: float
    item: dict[str, Any]
    result: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"event": self.event, "time": self.time, **self.item, "result": self.result}


class Entry:
    """A decision and how things stood when it was made."""

    __slots__ = ("by", "decision", "headroom", "news", "time")

    def __init__(self, decision: Decision, headroom: Any, time: float, by: str) -> None:
        self.decision, self.headroom, self.time, self.by = decision, headroom, time, by
        self.news: list[News] | None = None

    def why(self) -> dict[str, Any]:
        """All of it, for whoever asks why."""
        decision = self.decision
        return {
            "id": decision.id,
            "arm": decision.arm,
            "reason": decision.reason,
            "situation": decision.situation,
            "other": decision.other,
            "short": decision.headroom,  # of a round that is sat out for want of it, what there was, and
            "largest_cost": decision.largest_cost,  # what was needed
            "resource": decision.resource,
            "propensity": decision.propensity,
            "headroom": self.headroom,
            "time": self.time,
            "by": self.by,
            "news": [news.to_dict() for news in self.news or []],
        }


def as_answer(decision: Decision) -> dict[str, Any]:
    """A decision as the one who asked gets it: what does not apply is left out."""
    id, arm, situation, other = decision[:4]
    answer: dict[str, Any] = {"id": id, "arm": arm, "reason": decision.reason, "situation": situation}
    if other is not None:
        answer["other"] = other
    more = decision[4:]
    if more != NO_MORE:  # most often there is none
        answer |= {name: value for name, value in zip(MORE, more, strict=True) if value is not None}
    return answer


class DecisionLog:
    """The last events of one bandit in this process, each with a number; older ones are forgotten."""

    def __init__(self) -> None:
        self.number = 0
        self.events: deque[tuple[int, Entry | News]] = deque(maxlen=LOGGED)
        self.by_id: dict[int | str, Entry] = {}
        self.older: dict[int | str, Entry] = {}  # all at once forgotten when there are as many again

    def asked(self, decisions: list[Decision], headroom: Any, now: float, by: str) -> None:
        """Decisions were made for a request; the headroom is what was left after it."""
        number, events, by_id = self.number, self.events, self.by_id
        for decision in decisions:
            by_id[decision[0]] = entry = Entry(decision, headroom, now, by)
            number += 1
            events.append((number, entry))
        self.number = number
        if len(by_id) >= LOGGED:
            self.by_id, self.older = {}, by_id

    def told(self, kind: str, now: float, items: list[dict[str, Any]], results: list[str]) -> None:
        """News of decisions came; what became of each is known, unless the rest could not be taken."""
        for item, result in zip(items, results, strict=False):
            news = News(kind, now, item, result)
            self.number += 1
            self.events.append((self.number, news))
            entry = self.find(item["id"])
            if entry is not None:
                entry.news = [news] if entry.news is None else [*entry.news, news][-10:]

    def find(self, id: int | str) -> Entry | None:
        """A decision, if it is not forgotten."""
        return self.by_id.get(id) or self.older.get(id)

    def after(self, number: int, count: int) -> list[dict[str, Any]]:
        """Events with a larger number, the oldest first; the last ones if there are too many."""
        if number >= self.number or not self.events:
            return []
        first = max(number + 1 - self.events[0][0], 0)
        wanted = list(islice(self.events, max(first, len(self.events) - count), None))
        return [as_event(*event) for event in wanted]

    def why(self, id: int | str) -> dict[str, Any] | None:
        """A decision with its reason, if it is not forgotten."""
        entry = self.find(id)
        return None if entry is None else entry.why()


def as_event(number: int, what: Entry | News) -> dict[str, Any]:
    """An event for JSON."""
    if isinstance(what, Entry):
        decision = what.decision
        return {
            "number": number,
            "event": ASK,
            "time": what.time,
            "id": decision.id,
            "arm": decision.arm,
            "reason": decision.reason,
        }
    return {"number": number, **what.to_dict()}
