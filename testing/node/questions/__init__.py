"""What a test asks of a broker that runs elsewhere."""
