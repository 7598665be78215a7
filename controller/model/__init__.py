"""Value types of the controller: brokers, leadership, assignments, topic names, settings."""
