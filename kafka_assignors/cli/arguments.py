"""Kinds of arguments that several commands take; imports nothing that takes time."""

import argparse


def whole(text: str) -> int:
    """A whole number from 0 on."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1 on."""
    number = whole(text)
    if number == 0:
        raise argparse.ArgumentTypeError("0 is too few")
    return number
