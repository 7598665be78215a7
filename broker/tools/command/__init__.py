"""What the commands share: options, the client's configuration, output, errors."""
