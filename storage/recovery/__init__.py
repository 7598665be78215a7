"""What a start does with logs that were not closed in order."""
