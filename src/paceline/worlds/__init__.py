"""Worlds: what a pull yields."""
