"""The command `kafka-assignors`, as `python -m kafka_assignors`."""

import sys

from kafka_assignors._cli.main import main

if __name__ == "__main__":
    sys.exit(main())
