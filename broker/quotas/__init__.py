"""Quotas of clients: which quota applies to a client, what the client used of it, how long its connection is muted."""
