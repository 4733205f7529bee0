"""The compiled parts. All else stands in pyproject.toml, whose table for such parts is experimental."""

from pathlib import Path

from setuptools import Extension, setup

# Each is all the C sources of a folder. For speed only: without a compiler they are left out, and the same is
# done in Python.
COMPILED = {
    "kafka_assignors._wire._codec": Path("kafka_assignors/_wire"),
    "kafka_assignors.planners._exact._flow": Path("kafka_assignors/planners/_exact"),
}

setup(
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
