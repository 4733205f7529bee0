"""What a group leader's work costs: ours beside other clients' on the same bytes (`python -m benchmarks`)."""
