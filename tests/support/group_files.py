"""Groups as `kafka-assignors plan` reads them."""

from typing import Any

GROUP: dict[str, Any] = {
    "topics": {"orders": 6, "payments": {"partitions": [0, 1, 2, 4]}},
    "members": {
        "c1": {"owns": {"orders": [0, 1, 2], "payments": [0, 1]}},
        "c2": {"owns": {"orders": [3, 4], "payments": [2, 4]}},
        "c3": {},
        "c4": {"topics": ["orders"]},
    },
}


GROUP_AS_YAML = """\
topics:
  orders: 6
  payments: {partitions: [0, 1, 2, 4]}
members:
  c1:
    owns: {orders: [0, 1, 2], payments: [0, 1]}
  c2:
    owns:
      orders: [3, 4]
      payments: [2, 4]
  c3:
  c4: {topics: [orders]}
"""


def large(partitions: int) -> dict[str, Any]:
    """A group of members with the long ids that clients make up, to which some are new."""
    members = [f"consumer-g-{n}-7c9e6679-7425-40de-944b-e07fc1f90ae7" for n in range(100)]
    owns: list[dict[str, list[int]]] = [{} for _ in members]
    for flat in range(20 * partitions):
        owns[flat * flat % 90].setdefault(f"topic{flat % 20}", []).append(flat // 20)
    return {
        "topics": {f"topic{n}": partitions for n in range(20)},
        "members": {name: {"owns": owned} for name, owned in zip(members, owns, strict=True)},
    }
