"""State machines of partitions and replicas, and the elections, as pure decisions."""
