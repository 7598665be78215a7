"""Validation of records against a JSON Schema."""
