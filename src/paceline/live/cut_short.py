"""Calls that were cut short, by Ctrl-C or otherwise, before Python had heard what the engine has done."""

from typing import TYPE_CHECKING

from paceline.live import outcomes
from paceline.live.events import Cancel, Costs

if TYPE_CHECKING:
    from paceline.live.ledger import Ledger


def finish_ask(ledger: "Ledger", time: int) -> None:
    """Nobody has got the last decision: it is cancelled."""
    if not ledger.has_round_open():
        return  # it had not begun, or all is done but the answer
    if ledger.seen is not ledger.arm_set.lineup:
        ledger.arm_set.widen(ledger.seen)
    facts, tally = ledger.facts, ledger.arm_set.books.tally
    if facts is not None and facts.key is not None:  # whoever asks again gets another decision
        ledger.answers.take_back(facts.key)
        facts = facts._replace(key=None)
    if ledger.rounds + 1 in ledger.pending:
        outcomes.take_out(ledger, ledger.rounds + 1, ledger.pending.at(ledger.rounds + 1))
    choice = ledger.in_slots(int(tally.arm), int(tally.reason), int(tally.tag))
    ledger.begin(*choice, time, None, facts)
    if choice[0] >= 0:
        outcomes.cancel(ledger, Cancel(ledger.rounds, time))


def finish_tell(ledger: "Ledger", number: int, reward: float, costs: Costs) -> None:
    """An outcome, if the engine has been told of it; else it can be told again."""
    if int(ledger.arm_set.books.tally.told) == ledger.told:
        return
    if number in ledger.pending:
        outcomes.finish(ledger, number, ledger.pending[number], (reward, costs))
    else:
        ledger.told += 1  # which comes last
