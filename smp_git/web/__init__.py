"""A session to look at: a page on this machine, and a report in one file.

Entered by: report, serve.
"""
