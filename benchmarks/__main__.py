"""Every benchmark, as ratios within one run, from the root of the repository.

    python -m benchmarks                 all of them, the slow ones last
    python -m benchmarks quick           all but the slow ones
    python -m benchmarks rounds live     these

Machines are noisy, so contestants take turns and each is judged by its fastest turn.
"""

import sys

from benchmarks import (
    arms,
    cluster,
    crash,
    history,
    late_rewards,
    live,
    live_size,
    lp,
    memory,
    resources,
    rounds,
    scale,
    service,
    stalls,
    startup,
    threads,
)

QUICK = {
    module.__name__.rpartition(".")[2]: module
    for module in (rounds, arms, scale, lp, threads, live, memory, history, startup)
}
SLOW = {
    **{"cluster": cluster, "resources": resources, "late_rewards": late_rewards, "service": service},
    **{"stalls": stalls, "live_size": live_size, "crash": crash},
}
MINUTES = {  # about, on two cores
    **{"cluster": 3, "resources": 15, "late_rewards": 2, "service": 2},
    **{"stalls": 2, "live_size": 2, "crash": 20},
}
ALL = {**QUICK, **SLOW}


def main(wanted: list[str]) -> None:
    chosen = [name for each in wanted or ALL for name in (QUICK if each == "quick" else [each])]
    unknown = [name for name in chosen if name not in ALL]
    if unknown:
        sys.exit(f"benchmarks must be of quick, {', '.join(ALL)}, got {unknown[0]!r}")
    slow = [f"{name} (about {MINUTES[name]} minutes)" for name in chosen if name in SLOW]
    if slow:
        print(f"slow: {', '.join(slow)}")
    for name in chosen:
        print(f"\n{name}: {(ALL[name].__doc__ or '').splitlines()[0]}")
        ALL[name].main()


if __name__ == "__main__":
    main(sys.argv[1:])
