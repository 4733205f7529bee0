"""Scripts of chaos in other processes."""

import subprocess
import sys

from tests.lab.chaos import plan_events


def test_one_seed_gives_one_script_in_every_process() -> None:
    script = plan_events(7, 50)
    assert script == plan_events(7, 50)
    assert script != plan_events(8, 50)
    code = "from tests.lab.chaos import plan_events; print(plan_events(7, 50))"
    for hash_seed in "12":
        again = subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)},
        )
        assert again.stdout == f"{script}\n"
