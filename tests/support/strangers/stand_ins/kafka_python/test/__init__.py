"""The package of kafka-python's tests, which its source package does not contain, with their modules."""

import pkgutil

__path__ = pkgutil.extend_path(__path__, __name__)
