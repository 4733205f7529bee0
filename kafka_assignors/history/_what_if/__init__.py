"""What other assignors, or static members, would have made of a group's history."""
