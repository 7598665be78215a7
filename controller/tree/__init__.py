"""The port to the tree of metadata, and what is behind it: ZooKeeper, or SQLite on one node."""
