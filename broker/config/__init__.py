"""From server.properties and dynamic configs to typed values."""
