"""Committed offsets: requests about them, and those that old clients keep in the metadata tree."""
