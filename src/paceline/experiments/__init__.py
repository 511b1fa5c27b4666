"""Experiments: many policies on many problems, from one file, on one machine or many, with results that last."""
