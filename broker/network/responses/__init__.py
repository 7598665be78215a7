"""Responses and their records, on the way to the socket."""
