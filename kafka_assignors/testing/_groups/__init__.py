"""Consumer groups under test: members, what they run in and are made of, and when a group is stable."""
