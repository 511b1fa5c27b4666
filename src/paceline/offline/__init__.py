"""Policy evaluation on logged data."""
