"""Listeners: the socket server, its limits on connections, and the HTTP of small listeners."""
