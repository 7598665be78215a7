"""Counters that parts of the broker increment while metrics are on."""
