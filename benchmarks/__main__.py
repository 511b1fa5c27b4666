"""Every benchmark, as ratios within one run: ``python -m benchmarks`` from the root of the repository.

Machines are noisy, so contestants take turns and each is judged by its fastest turn.
"""

from benchmarks import arms, live, memory, rounds, startup, threads

for benchmark in (rounds, arms, threads, live, memory, startup):
    print(f"\n{(benchmark.__doc__ or '').splitlines()[0]}")
    benchmark.main()
