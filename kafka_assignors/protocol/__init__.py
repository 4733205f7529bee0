"""The bytes that members exchange through the coordinator."""
