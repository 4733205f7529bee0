"""Generators, start indexes and shifts read back from placements."""
