"""Requests of the commands: to any broker, the controller, the coordinators, or the leaders of partitions."""
