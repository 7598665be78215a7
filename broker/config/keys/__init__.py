"""The tables of configuration keys, one per theme: Kafka's names, types and defaults."""
