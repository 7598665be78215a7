"""Topics, their partitions, replicas and log directories; metadata."""
