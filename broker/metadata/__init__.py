"""The broker's metadata cache, its identity, and its metadata tree."""
