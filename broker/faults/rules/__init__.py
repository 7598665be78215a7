"""What a fault is: rules as values, as JSON and YAML, and by name."""
