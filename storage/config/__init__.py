"""Configurations of topics, of the cleaner and of producer states."""
