"""What clients ask of the controller: topics, configs, quotas, credentials, cluster."""
