"""Loading logs at start, and recovering those that were not closed cleanly."""
