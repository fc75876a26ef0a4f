"""Traces in the formats of others: one file a target."""
