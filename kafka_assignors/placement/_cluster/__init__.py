"""Placements on a running cluster: read, made and changed. All of this package's I/O is here."""
