"""The nodes of the tree: their paths and their contents."""
