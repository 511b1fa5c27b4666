"""What theory says: a yardstick for any policy, the paper's bounds for SUAK, and those of prior work."""

from paceline.problems.limit import Limits, is_capped, least_divergence, limit, limits
from paceline.problems.prior_work import (
    PriorWork,
    Symbols,
    bernasconi_order,
    elumar_order,
    flajolet_order,
    kumar_order,
    li_order,
    prior_work,
    symbols_of,
)
from paceline.problems.suak_bound import (
    SuakBound,
    base_selections,
    confidence_failures,
    smallest_base_gaps,
    smallest_gap_estimate,
    suak_bound,
)

__all__ = [
    "Limits",
    "PriorWork",
    "SuakBound",
    "Symbols",
    "base_selections",
    "bernasconi_order",
    "confidence_failures",
    "elumar_order",
    "flajolet_order",
    "is_capped",
    "kumar_order",
    "least_divergence",
    "li_order",
    "limit",
    "limits",
    "prior_work",
    "smallest_base_gaps",
    "smallest_gap_estimate",
    "suak_bound",
    "symbols_of",
]
