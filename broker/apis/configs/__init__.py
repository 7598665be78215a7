"""Configurations, features and client quotas."""
