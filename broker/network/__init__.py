"""Sockets: listeners, connections, frames in and responses out."""
