"""Assertions about a broker without a client: its records, requests, groups and transactions; the failure report."""
