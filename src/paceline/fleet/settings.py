"""The settings of a fleet: those of a `Bandit`, written in one way, and what they mean for store and worker."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from paceline import checks
from paceline.errors import InvalidValue
from paceline.fleet.protocol import HOUR, Account, open_account
from paceline.kernels.budget import UNLIMITED
from paceline.live.bandit import Bandit
from paceline.live.config import Config, make_config, policy_in_file
from paceline.live.reports import check_adds_up
from paceline.live.resource import DOWN, label
from paceline.policies import POLICIES

USUAL: dict[str, Any] = {
    "budget": 0.0,
    "policy": "index",
    "max_cost": 1.0,
    "max_reward": 1.0,
    "seed": 0,
    "scale": None,
    "start": None,
    "cap": None,
    "max_refill": None,
    "rounds": None,
    "hourly": None,
    "expires": None,
    "silence": None,
    "remember": 10_000,
}

CHANGES = ("set", "add", "pause", "resume", "retire")


def config_of(settings: Mapping[str, Any]) -> Config:
    """The settings, checked; those that are not given are as usual."""
    unknown = [name for name in settings if name not in ("arms", *USUAL)]
    if unknown:
        rule = f"of arms, {', '.join(USUAL)}"
        raise InvalidValue(f"settings of a fleet must be {rule}, got {unknown[0]!r}")
    if "arms" not in settings:
        raise InvalidValue("settings of a fleet must name its arms, got none")
    given = {**USUAL, **settings}
    return check_fits(make_config(**{**given, "policy": as_policy(given["policy"])}))


def as_policy(given: Any) -> Any:
    """A policy by its name, as an object, or as a file has it."""
    if isinstance(given, Mapping):
        if not isinstance(given.get("name"), str) or not isinstance(given.get("parameters", {}), Mapping):
            raise InvalidValue(f"policy must have a name and parameters, got {given!r}")
        return policy_in_file({"name": given["name"], "parameters": dict(given.get("parameters", {}))}, None)
    return given


def check_fits(config: Config) -> Config:
    """Refuse what a fleet cannot do."""
    if config.policy.name not in POLICIES:
        raise InvalidValue(f"policy of a fleet must be one of paceline's, got {config.policy.name!r}")
    check_adds_up(config.policy)
    return config


def canonical(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in one way: the same fleet is the same text.

    >>> canonical({"arms": ["a", "b"], "budget": 1})["budget"]
    1.0
    """
    written = config_of(settings).to_dict()
    return {name: written[name] for name in ("arms", *USUAL)}


def account_for(settings: Mapping[str, Any]) -> Account:
    """The account of a new fleet."""
    config = config_of(settings)
    start = tuple(resource.currency.income(resource.start) for resource in config.resources)
    caps = tuple(None if resource.cap_units == UNLIMITED else resource.cap_units for resource in config.resources)
    return open_account(start, hourly_of(config), caps)


def hourly_of(config: Config) -> tuple[tuple[int, int], ...]:
    """What the clock brings: units per millisecond, exactly."""
    rates = [Fraction(resource.hourly) * Fraction(resource.currency.units) / HOUR for resource in config.resources]
    return tuple([(rate.numerator, rate.denominator) for rate in rates])


def check_credit(over: int, rate: bool) -> None:
    """Refuse a credit that only a bandit of its own can take."""
    if over or not rate:
        raise InvalidValue(f"a credit of a fleet must be at once and as income, got over={over!r}, rate={rate!r}")


def credit_units(config: Config, amount: Any) -> dict[str, int]:
    """A credit in whole units by resource, rounded down; what cannot be counted is refused.

    >>> credit_units(config_of({"arms": ["a"], "budget": 0.5}), 0.25)
    {'cost': 1073741824}
    """
    units = {}
    for resource, given in zip(config.resources, config.in_order("credit", amount), strict=True):
        if given is None and not config.is_unnamed:
            continue
        thing = label("credit", resource.name)
        more = checks.real(thing, given, 0, above_low=True, toward=DOWN)
        resource.currency.check_total(thing, 0, more)
        units[resource.name] = resource.currency.income(more)
    if not units:
        raise InvalidValue("credit must be a number for some resource, got none")
    return units


def credit_amount(config: Config, units: Mapping[str, int]) -> Any:
    """The way back: a number, or by name where resources have names."""
    amounts = {one.name: one.currency.amount(units[one.name]) for one in config.resources if one.name in units}
    return next(iter(amounts.values())) if config.is_unnamed else amounts


def for_worker(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What a worker's own `Bandit` is made of: start stock and income by the clock come from the pool."""
    config = config_of(settings)
    none = config.by_name([0.0] * len(config.resources))
    return {**settings, "policy": config.policy, "start": none, "hourly": none}


def apply_change(bandit: Bandit, change: Mapping[str, Any], *, is_worker: bool) -> None:
    """Let a change of the settings happen to a bandit."""
    ((kind, given),) = change.items()
    if kind == "set":
        chosen = {name: as_policy(value) if name == "policy" else value for name, value in given.items()}
        if is_worker:
            chosen.pop("hourly", None)  # which comes from the pool
        if chosen:
            Bandit.set(bandit, **chosen)
    elif kind == "add":
        Bandit.add(bandit, given["arm"], given.get("max_cost"))
    else:
        {"pause": Bandit.pause, "resume": Bandit.resume, "retire": Bandit.retire}[kind](bandit, given)


def check_change(change: object, known: Iterable[str]) -> dict[str, Any]:
    """A change of the settings, of the right form; ``known`` are the arms that there ever were."""
    if not isinstance(change, Mapping) or len(change) != 1 or next(iter(change)) not in CHANGES:
        raise InvalidValue(f"a change must have one entry of {', '.join(CHANGES)}, got {change!r}")
    ((kind, given),) = change.items()
    if kind == "set":
        allowed = ("budget", "max_cost", "policy", "expires", "silence", "hourly")
        if not isinstance(given, Mapping) or not given or any(name not in allowed for name in given):
            raise InvalidValue(f"set must have entries of {', '.join(allowed)}, got {given!r}")
        if "policy" in given:
            written = as_written(given["policy"])
            return {"set": {**given, "policy": written}}
    if kind == "add":
        if not isinstance(given, Mapping) or not {"arm"} <= set(given) <= {"arm", "max_cost"}:
            raise InvalidValue(f"add must have an arm and may have its max_cost, got {given!r}")
        if given["arm"] in known:
            raise InvalidValue(f"the name of a new arm of a fleet must never have been used, got {given['arm']!r}")
    return {kind: given}


def as_written(policy: Any) -> dict[str, Any]:
    """A policy as it stands in a change."""
    written: dict[str, Any] = canonical({"arms": ["a"], "policy": policy})["policy"]
    return written


def rehearse(settings: Mapping[str, Any], changes: Iterable[Mapping[str, Any]]) -> Bandit:
    """A bandit to which all changes have happened: what is wrong with one shows here, and not at the workers."""
    bandit = Bandit(**{**settings, "policy": as_policy(settings["policy"])})
    for change in changes:
        apply_change(bandit, change, is_worker=False)
    return bandit


def describe(bandit: Bandit) -> dict[str, Any]:
    """The settings in force as a document: `canonical`, but arms with what has become of them."""
    config = check_fits(bandit._ledger.config)
    written = config.to_dict()
    document = {name: written[name] for name in USUAL}
    arm_set = bandit._ledger.arm_set
    return {
        **document,
        "arms": bandit.arms,
        "max_costs": {name: config.by_name(arm_set.max_costs[slot]) for name, slot in arm_set.slot_by_name.items()},
    }
