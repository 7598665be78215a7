"""Moves of replicas between brokers and directories, and elections of leaders."""
