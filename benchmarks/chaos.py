"""The stored run of chaos: what the kit's own command does, told with the machine that it was on.

python -m benchmarks.chaos --seed 1 --events 170
"""

import sys
from pathlib import Path

from benchmarks import machine
from kafka_assignors.testing.chaos.__main__ import main

RESULT = Path(__file__).parent / "results" / "chaos.md"

if __name__ == "__main__":
    sys.exit(main(output=RESULT, machine=machine.describe(), command="benchmarks.chaos"))
