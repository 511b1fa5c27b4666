"""What the author of a policy, a world or a store runs: the conformance checks that ours pass, too."""

from paceline.testing.policies import check_policy
from paceline.testing.stores import check_store
from paceline.testing.worlds import check_world

__all__ = ["check_policy", "check_store", "check_world"]
