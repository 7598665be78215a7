"""Makes the parts of a broker, and connects them: what `KafkaServer` starts and stops."""
