"""Faults on command: rules that match requests of clients, and what happens to these requests instead of an answer."""
