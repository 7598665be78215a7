"""The state machines of partitions and replicas, and leader election."""
