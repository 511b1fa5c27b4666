from .environment import BudgetEnv as BudgetEnv
from .registration import ID as ID
from .registration import register as register

__all__: list[str]
