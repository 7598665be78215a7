"""The tree of nodes as requests see it: ACLs, watches, events."""
