"""Structured answers from the tracked index, ranked and explained.

Entered by: across, answer, bisect, briefing, context, desk, links, overviews, questions,
request, sources, text, vectors.
"""
