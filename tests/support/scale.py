"""How much the random tests try, and how long tests wait for members.

`--oracle-scale` is for loops over seeds, the profile for hypothesis, `--slowness` for waits.
"""

import hypothesis

GATE_SCALE = 0.2
"""`--oracle-scale` of the gate, which has to end in minutes; at 1, sizes and numbers are whole."""

GATE_EXAMPLES = 100
"""Examples of a property that says nothing about their number, in the profile `gate`."""

_scale = _slowness = 1.0


def set_scale(scale: float, slowness: float) -> None:
    """Set both options; before any test module is imported, as their parameters depend on them."""
    global _scale, _slowness
    _scale, _slowness = scale, slowness


def longer(time: float) -> float:
    """How long to wait on this machine, where that is enough on an idle one."""
    return time * _slowness


def scaled(count: int) -> int:
    """How many to try where a whole run tries `count`; at least one."""
    return max(1, round(count * _scale))


def block(number: int, count: int) -> range:
    """The seeds of block 0, 1, 2... where a whole run has blocks of `count` seeds."""
    return range(scaled(count) * number, scaled(count) * (number + 1))


def few() -> bool:
    """Whether fewer are tried than in a whole run, too few to expect how often something is found."""
    return _scale < 1


def sampled(count: int) -> range:
    """The seeds of a unit test that tries `count` in the profile `gate`, in others proportionally many."""
    return range(max(1, round(count * hypothesis.settings().max_examples / GATE_EXAMPLES)))


def examples(count: int) -> hypothesis.settings:
    """A property of which the profile `gate` tries `count` examples, others proportionally many."""
    return hypothesis.settings(max_examples=len(sampled(count)))
