"""Answers that a fault changes: their bytes, their error codes, and when they are sent."""
