"""Requests about the connection itself: versions and SASL."""
