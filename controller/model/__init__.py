"""The controller's values: brokers, leadership, assignments, names, settings."""
