"""Memories of other programs taken in, and written out in their formats.

Entered by: entries, export, files, formats, intake, migrate, report, transcripts.
"""
