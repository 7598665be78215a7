"""Kafka's znodes: paths, contents, and the operations on them."""
