"""Settings that every test shares."""

from hypothesis import settings

# Derandomized: the same examples in every run, so a red test is red for everyone. No deadline: the first example of a
# test may include a compilation.
settings.register_profile("paceline", derandomize=True, deadline=None)
settings.load_profile("paceline")
