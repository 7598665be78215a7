"""Configs of topics, brokers, loggers, users, clients and addresses; quotas."""
