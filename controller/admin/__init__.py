"""Administrative requests of clients: topics, configs, quotas, credentials."""
