"""Structured answers from the tracked index, ranked and explained."""
