"""A consumer: fetches, offsets, membership of a group."""
