"""What happened to a group: the events of its members, and what follows from them."""
