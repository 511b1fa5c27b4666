"""What gymnasium calls the environment."""

ID = "paceline/Budget-v0"


def register() -> None:
    """Tell gymnasium of the environment, so that ``gymnasium.make(ID, problem=..., rounds=...)`` makes one.

    >>> import gymnasium
    >>> import paceline as pl
    >>> register()
    >>> gymnasium.make("paceline/Budget-v0", problem=pl.paper.three_arms(), rounds=50).action_space
    Discrete(4)
    """
    from gymnasium.envs import registration

    if ID not in registration.registry:
        registration.register(ID, entry_point="paceline.gym:BudgetEnv")
