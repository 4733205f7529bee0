"""The compiled parts. All else stands in pyproject.toml, whose table for such parts is experimental."""

from setuptools import Extension, setup

# For speed only: without a compiler they are left out, and the same is done in Python.
COMPILED = {
    "kafka_assignors/_wire/_codec.c": ["kafka_assignors/_wire/_bytes.h"],
    "kafka_assignors/history/_tables/_decode.c": ["kafka_assignors/_wire/_bytes.h"],
    "kafka_assignors/planners/_exact/_flow.c": [],
}

setup(
    ext_modules=[
        Extension(
            source.removesuffix(".c").replace("/", "."),
            [source],
            depends=depends,
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            py_limited_api=True,
            optional=True,
        )
        for source, depends in COMPILED.items()
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
