"""A gymnasium environment over the worlds of this package, behind its guard: `BudgetEnv`.

It needs gymnasium (``pip install 'paceline[gym]'``), which is imported when the environment is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
