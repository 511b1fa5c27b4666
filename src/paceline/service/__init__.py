"""Decisions over HTTP: a member of a fleet behind routes, tokens and a page. The only folder that speaks HTTP."""
