"""The laboratory: run policies on problems, turn raw totals into regret, show it."""
