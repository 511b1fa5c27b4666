"""What a live bandit is told when it is made: checked once, and written at the head of every file."""

import hashlib
import json
import math
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from paceline import checks
from paceline.errors import InvalidValue
from paceline.live.resource import LARGEST_AMOUNT, Resource, label, make_resources
from paceline.policies import POLICIES, PolicyLike, label_policies, make_policy
from paceline.policies.policy import Policy, Setting
from paceline.problems.resources import by_resource

MOST_SECONDS = 1e11  # three thousand years: what is longer was meant otherwise
NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")  # of a worker
OF_A_RESOURCE = tuple(field.name for field in fields(Resource) if field.name != "name")


@dataclass(frozen=True)
class Config:
    """The settings of a bandit."""

    arms: tuple[str, ...]
    resources: tuple[Resource, ...]
    is_unnamed: bool  # whether there is one resource that needs no name: then its amounts stand alone
    policy: Policy
    max_reward: float
    seed: int
    rounds: int | None
    remember: int
    expires: float | None
    silence: float | None
    period: float | None
    worker: str | None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the resources."""
        return tuple(resource.name for resource in self.resources)

    @cached_property
    def set_of_names(self) -> frozenset[str]:
        """The same, to compare with."""
        return frozenset(self.names)

    def by_name(self, values: Sequence[Any]) -> Any:
        """Values by the name of their resource; of one resource without a name the value itself."""
        return values[0] if self.is_unnamed else dict(zip(self.names, values, strict=True))

    def in_order(self, thing: str, given: Any) -> tuple[Any, ...]:
        """Values that are given by resource, None where nothing is given: the way back from `by_name`."""
        if self.is_unnamed:
            return (given,)
        if type(given) is dict and given.keys() == self.set_of_names:  # the usual case costs no message
            return tuple([given[name] for name in self.names])
        return tuple(value for _, value in by_resource(thing, given, self.names, otherwise=None).values())

    def largest_in_order(self, max_cost: Any) -> tuple[Any, ...]:
        """The largest costs of an arm as they are given: one for all resources alike, or by resource."""
        if isinstance(max_cost, Mapping) and not self.is_unnamed:
            return self.in_order("max_cost", max_cost)
        return (max_cost,) * len(self.resources)

    def setting(self, max_costs: npt.NDArray[np.float64]) -> Setting:
        """What the policy is told of arms with these largest costs, on its own scale."""
        return Setting(
            arms=len(max_costs),
            rates=tuple(resource.budget / resource.scale for resource in self.resources),
            rounds=self.rounds,
            max_costs=max_costs,
            start=tuple(resource.start / resource.scale for resource in self.resources),
            caps=tuple(math.inf if one.cap is None else one.cap / one.scale for one in self.resources),
            refills=tuple(resource.max_refill > 0.0 for resource in self.resources),
            seed=self.own_seed,
        )

    @cached_property
    def own_seed(self) -> int:
        """The seed of the policy's draws: workers with the same seed draw differently."""
        return self.seed if self.worker is None else seed_of_worker(self.seed, self.worker)

    def to_dict(self) -> dict[str, Any]:
        """For JSON. That amounts were given by name can be seen from how they are written."""
        settings = {name: getattr(self, name) for name in ("max_reward", "seed", "rounds", "remember")}
        return {
            "arms": list(self.arms),
            **{name: self.by_name([getattr(one, name) for one in self.resources]) for name in OF_A_RESOURCE},
            "policy": {"name": self.policy.name, "parameters": parameters_of(self.policy)},
            **settings,
            "expires": self.expires,
            "silence": self.silence,
            "period": self.period,
            "worker": self.worker,
        }


def make_config(
    arms: Sequence[str],
    budget: float | Mapping[str, float],
    policy: PolicyLike,
    max_cost: object,
    max_refill: float | Mapping[str, float] | None,
    max_reward: float,
    scale: float | Mapping[str, float] | None,
    start: float | Mapping[str, float] | None,
    cap: float | Mapping[str, float] | None,
    rounds: int | None,
    seed: int,
    remember: int,
    expires: float | None,
    silence: float | None,
    hourly: float | Mapping[str, float] | None = None,
    period: float | None = None,
    worker: str | None = None,
) -> Config:
    """The settings, once every one of them has passed its check."""
    names = tuple(check_arms(arms))
    resources = make_resources(names, budget, max_cost, max_refill, scale, start, cap, hourly)
    rounds = None if rounds is None else checks.rounds("rounds", rounds)
    config = Config(
        arms=names,
        resources=resources,
        is_unnamed=not isinstance(budget, Mapping),
        policy=one_policy(policy),
        max_reward=checks.real("max_reward", max_reward, 0, LARGEST_AMOUNT, above_low=True),
        seed=checks.seed(seed),
        rounds=rounds,
        remember=checks.whole("remember", remember, 0),
        expires=check_seconds("expires", expires),
        silence=check_silence(silence, max_reward),
        period=check_seconds("period", period),
        worker=None if worker is None else check_worker(worker),
    )
    return check_policy_fits(config)


def check_policy_fits(config: Config) -> Config:
    """A policy that cannot run live, with that many resources, or so long, says so here."""
    count = len(config.resources)
    for resource in config.resources:
        if config.rounds is None and resource.start > 0.0 == resource.budget == resource.max_refill:
            thing = label("the start stock", resource.name)
            raise InvalidValue(f"rounds must say how long {thing} has to last without income, got none")
    config.policy.check_resources(count)
    config.policy.params(config.setting(np.ones((len(config.arms), count))))
    return config


def check_seconds(thing: str, given: object) -> float | None:
    """A time span, or none."""
    return None if given is None else checks.real(thing, given, 0, MOST_SECONDS, above_low=True)


def check_silence(given: object, max_reward: float) -> float | None:
    """The reward that no news stands for, or none."""
    return None if given is None else checks.real("silence", given, 0, max_reward)


def check_worker(given: object) -> str:
    """A name that ids can begin with."""
    if not isinstance(given, str) or not NAME.fullmatch(given):
        rule = "a name of up to 100 letters, digits, dots, hyphens and underscores"
        raise InvalidValue(f"worker must be {rule}, got {given!r}")
    return given


def seed_of_worker(seed: int, worker: str) -> int:
    """A seed that differs from worker to worker, and is the same whenever the worker starts."""
    return int.from_bytes(hashlib.sha256(f"{seed} {worker}".encode()).digest()[:8], "little")


def one_policy(given: PolicyLike) -> Policy:
    """The policy, from a name or an object."""
    chosen = label_policies(given)
    if len(chosen) != 1:
        raise InvalidValue(f"policy must be one policy, got {', '.join(chosen)}")
    return next(iter(chosen.values()))


def parameters_of(policy: Policy) -> dict[str, Any]:
    """The parameters of a policy, as JSON gives them back."""
    names: list[str] = [field.name for field in fields(policy) if field.init] if is_dataclass(policy) else []
    return {name: as_in_json(policy, name) for name in names}


def as_in_json(policy: Policy, name: str) -> Any:
    """One of them, if JSON can hold it."""
    given = getattr(policy, name)
    value = given.item() if isinstance(given, np.generic) else given
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError, RecursionError):
        rule = "a number, a text, or a list or dict of them to be written to a file"
        raise InvalidValue(f"{name} of {policy.name} must be {rule}, got a {type(given).__name__}") from None


def check_arms(arms: object, known: Container[str] = ()) -> list[str]:
    """Names of new arms: texts that are not taken."""
    if isinstance(arms, str | bytes) or not isinstance(arms, Sequence):
        raise InvalidValue(f"arms must be a list of names, got {arms!r}")
    names: dict[str, None] = {}
    for name in arms:
        if not isinstance(name, str) or not name:
            raise InvalidValue(f"the name of an arm must be a text that is not empty, got {name!r}")
        if name in names or name in known:
            raise InvalidValue(f"names of arms must differ, got {name!r} twice")
        names[name] = None
    if not names:
        raise InvalidValue("arms must name at least one arm, got none")
    return list(names)


def read_config(table: dict[str, Any], policy: PolicyLike | None) -> Config:
    """The settings that `Config.to_dict` wrote; a policy that is not one of ours must be given again."""
    return make_config(**{**table, "policy": policy_in_file(table["policy"], policy)})


def policy_in_file(written: dict[str, Any], given: PolicyLike | None) -> Policy:
    """A policy that a file names. One of ours needs no help, also where another is given for a later time."""
    name, parameters = written["name"], written["parameters"]
    if name in POLICIES and given is not None and one_policy(given).name != name:
        given = None
    return same_policy(name, parameters, given)


def notice_of(given: PolicyLike | None, now: Policy) -> str | None:
    """What is to be said of a policy that was given with a file which goes on with another.

    One of the user's own may be needed for what happened before another was set. One of ours never is: whoever gives it
    means it to be used, and is refused.
    """
    name = now.name if given is None else one_policy(given).name
    if name == now.name:
        return None
    if name in POLICIES:
        raise InvalidValue(f"policy must be {now.name!r}, as it was saved, got {name!r}")
    return f"policy {name!r} was given, and {now.name!r} goes on, which was set since"


def same_policy(name: str, parameters: dict[str, Any], given: PolicyLike | None) -> Policy:
    """The policy of that name and with these parameters: made anew, or the one that is given if it is the same."""
    if given is None:
        if name not in POLICIES:
            rule = "must be given again, as an object or as module:Class or file.py:Class"
            raise InvalidValue(f"policy {name!r} is not one of paceline's: policy= {rule}, got none")
        given = name
    if isinstance(given, str) and (given == name or given not in POLICIES):
        policy = make_policy(given, **parameters)
    else:
        policy = one_policy(given)
    if policy.name != name:
        raise InvalidValue(f"policy must be {name!r}, as it was saved, got {policy.name!r}")
    for parameter, value in parameters_of(policy).items():
        saved = parameters.get(parameter, value)  # it may be younger than the file
        if value != saved and repr(value) != repr(saved):  # one that is not a number differs from itself
            raise InvalidValue(f"{parameter} of {name} must be {saved!r}, as it was saved, got {value!r}")
    return policy
