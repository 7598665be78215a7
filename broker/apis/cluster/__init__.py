"""Requests between the controller and the brokers."""
