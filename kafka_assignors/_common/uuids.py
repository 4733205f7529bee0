"""UUIDs in the letters that Kafka has for them."""

import base64
from uuid import UUID


def uuid_text(uuid: UUID) -> str:
    """A UUID as Kafka's `Uuid.toString` has it: base64 of its bytes, for URLs, without padding."""
    return base64.urlsafe_b64encode(uuid.bytes).decode().rstrip("=")
