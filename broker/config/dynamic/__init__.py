"""Configs that change while the broker runs: which may change, to what, and their passwords."""
