"""Faults on command over HTTP, for tests in other languages."""
