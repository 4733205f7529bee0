"""Experiments and soaks of the project itself; the others measure what a user waits for."""
