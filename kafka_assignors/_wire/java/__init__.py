"""Orders and random numbers as Java has them."""
