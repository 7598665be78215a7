"""Topics, the offsets of their partitions, and the deletion of records."""
