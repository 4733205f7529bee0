"""Plans of replica moves: exact, by flows."""
