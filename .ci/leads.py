"""Whether what is installed leads a group, with its compiled parts or without: `leads.py compiled|plain`."""

import sys
from importlib import import_module

from kafka_assignors import lead

COMPILED = ("_wire._codec", "planners._exact._flow")
MEMBER = bytes.fromhex("0000 00000001 0001 74 ffffffff")
ASSIGNMENT = bytes.fromhex("0003 00000001 0001 74 00000001 00000000 00000000")


def is_there(part: str) -> bool:
    """Whether a compiled part can be imported."""
    try:
        import_module(f"kafka_assignors.{part}")
    except ImportError:
        return False
    return True


wrong = [part for part in COMPILED if is_there(part) != (sys.argv[1] == "compiled")]
if wrong:
    sys.exit(f"not {sys.argv[1]}: {', '.join(wrong)}")
if lead({"t": [0]}, [("m", None, MEMBER)]) != {"m": ASSIGNMENT}:
    sys.exit("it does not lead a group of one member")
