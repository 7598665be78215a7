"""`odradek top`: a live screen of brokers, topics and groups."""
