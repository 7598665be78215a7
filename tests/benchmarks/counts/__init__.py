"""Counts of calls, system calls and memory of fixed sequences of requests."""
