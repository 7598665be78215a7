"""The module of kafka-python's tests that starts servers. With `KAFKA_URI` they are there already."""


class ExternalService:
    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port


class SpawnedService:
    """Never made: fixtures name it in code that does not run."""
