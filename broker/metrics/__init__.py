"""What the broker publishes about itself, and the endpoint for it."""
