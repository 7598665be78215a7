"""One client connection, from its first byte to its end."""
