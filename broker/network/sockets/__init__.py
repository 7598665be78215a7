"""Sockets, addresses, servers of streams, and the reasons why a connection is closed."""
