"""The base class of the library's errors."""


class KafkaAssignorsError(Exception):
    """Base class of all errors of this library; each is of a built-in kind besides."""
