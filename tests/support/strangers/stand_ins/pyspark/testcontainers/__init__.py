"""Takes the place of testcontainers for PySpark's tests, which ask for nothing else of it than a broker."""
