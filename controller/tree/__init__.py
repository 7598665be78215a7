"""The port to the metadata tree and its implementations: ZooKeeper, and SQLite for one node."""
