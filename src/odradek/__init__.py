"""Odradek: a Kafka broker in pure Python, compatible with Apache Kafka 3.9 in ZooKeeper mode."""

__version__ = "0.1.0"
