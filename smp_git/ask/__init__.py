"""Structured answers from the tracked index, ranked and explained.

Entered by: across, answer, bisect, briefing, catalogue, context, desk, links, overviews,
questions, ranking, request, sources, text.meanings, vectors.
"""
