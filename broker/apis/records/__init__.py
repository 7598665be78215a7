"""Records: Produce, Fetch, and the offsets of a partition."""
