"""What `balance_partitions` is made of: options, loads from log directories, the planner, the report."""
