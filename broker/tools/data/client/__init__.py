"""What producers and consumers share: requests, metadata, properties, signals, standard streams."""
