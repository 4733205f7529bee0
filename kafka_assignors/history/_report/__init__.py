"""The history of consumer groups as one HTML page."""
