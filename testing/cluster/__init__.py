"""Clusters for tests: several brokers and their metadata service, which a test stops, kills, pauses and cuts off."""
