"""The base class of the library's errors."""


class KafkaAssignorsError(Exception):
    """Base class of the error classes of this library; each is of a built-in kind besides."""
