"""TLS: contexts made from Kafka's `ssl.*` keys, stores of keys and certificates, names of clients with certificates."""
