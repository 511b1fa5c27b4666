"""What the author of a policy or a world runs: the conformance checks that ours pass, too."""

from paceline.testing.policies import check_policy
from paceline.testing.worlds import check_world

__all__ = ["check_policy", "check_world"]
