"""Copies of logs: what keeps a replica like the log it is copied from."""
