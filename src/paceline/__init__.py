"""Bandits with anytime knapsacks: choose among options of unknown reward and cost, never above the budget line.

The public names are listed once, in ``__init__.pyi``, and loaded when first used, so that ``paceline --help`` need not
wait for a compiler.
"""

from paceline.lazy import attach_stub

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
