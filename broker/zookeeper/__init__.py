"""A server of ZooKeeper's client protocol over the embedded metadata tree: one node."""
