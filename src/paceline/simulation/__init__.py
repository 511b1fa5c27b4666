"""Play policies on problems, and turn raw totals into regret."""
