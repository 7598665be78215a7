"""Requests that read and write the tree, and their answers."""
