"""The paper: its two problems, its two experiments, its claims."""

from paceline.paper.instances import eight_arms, three_arms

__all__ = ["eight_arms", "three_arms"]
