"""Problems: what the arms can yield, the best that can be had of them, and families of random ones."""

from paceline.problems import theory
from paceline.problems.conservative import conservative
from paceline.problems.families import KINDS, family, random

__all__ = ["KINDS", "conservative", "family", "random", "theory"]
