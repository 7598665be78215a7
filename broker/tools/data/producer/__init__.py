"""A producer: batches, partitions, sequence numbers, transactions."""
