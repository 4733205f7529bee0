"""Consumers of several clients in simulated groups: their own coordinator code in virtual time, or models."""
