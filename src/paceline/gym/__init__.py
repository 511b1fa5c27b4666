"""A gymnasium environment over the worlds of this package, behind its guard: `BudgetEnv`.

It needs gymnasium (``pip install 'paceline[gym]'``), which is imported when the environment is first used.
"""

from paceline.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
