"""Bytes to columns and back: what members exchange, and what their coordinator notes."""
