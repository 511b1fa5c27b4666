"""Live decisions: a bandit inside a running program."""
