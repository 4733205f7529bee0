"""The compiled parts, and the README as registries show it.

All else stands in pyproject.toml, whose table for compiled parts is experimental.
"""

import re
from pathlib import Path

from setuptools import Extension, setup

# Each is all the C sources of a folder. For speed only: without a compiler they are left out, and the same is
# done in Python.
COMPILED = {
    "kafka_assignors._wire._codec": Path("kafka_assignors/_wire"),
    "kafka_assignors.planners._exact._flow": Path("kafka_assignors/planners/_exact"),
}


def standing_alone(readme: str) -> str:
    """The README without pictures and links of the repository: a registry has only this one file."""
    without_pictures = re.sub(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n", "", readme, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", without_pictures)


setup(
    long_description=standing_alone(Path("README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
    ext_modules=[
        Extension(
            name,
            sorted(map(str, folder.glob("*.c"))),
            depends=sorted(map(str, folder.glob("*.h"))),
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            py_limited_api=True,
            optional=True,
        )
        for name, folder in COMPILED.items()
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
