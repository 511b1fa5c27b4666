"""Live decisions: a bandit inside a running program.

Where to find what, from the outside in:

* What users call: bandit (every call), kept (those about its files: open, load, save, snapshot, sync, close), booking
  (what all calls have in common: one lock, check, write, apply), requests (the checks; each gives an event), options,
  decision and answers (what `ask` gives), cut_short (Ctrl-C), forks (copies of the process).
* The books: events (all that can happen), ledger (where it happens: rounds), outcomes (what becomes of a pull), income
  (money), changes (arms, learning, settings). They are made of pulls (with shelves, where there are very many, and
  layers, while somebody looks through them), latest (what is remembered), deadlines, turnout (counts by arm and
  reason), and arms, with runs and memory: those in play as the policy sees them.
* Settings: config, resource, currency (amounts in whole units), settings (those that change).
* Money by the clock: timed_income, timetable (the pace by the period).
* Learning: late_rewards (clicks that come late or never), sums and reports (what others have learned).
* What can be seen: status, metrics (for Prometheus and OpenTelemetry), estimate (intervals), advice (the best mix),
  record (of one decision).
* Files that are written: journal (lines), segments (a journal in several files), keeper (snapshots and rotation),
  picture (a copy of the books), snapshot (the same as a document).
* Files that are read: recovery (back to the books), reading (beside a running bandit), rounds and log (in words),
  export (as a table), verify, repair; old_formats and old_saves (what earlier versions wrote).
"""
