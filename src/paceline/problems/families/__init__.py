"""Random problems that anyone can draw again: families to tune on, and others to judge on."""

from paceline.problems.families.family import (
    KINDS,
    RECIPES,
    check_kind,
    family,
    observations_of,
    random,
    rounds_of,
)
from paceline.problems.families.recipe import SHORTFALL

__all__ = ["KINDS", "RECIPES", "SHORTFALL", "check_kind", "family", "observations_of", "random", "rounds_of"]
