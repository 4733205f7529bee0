"""What every room needs and no room owns: lazy packages, waiting, progress, times, words."""
