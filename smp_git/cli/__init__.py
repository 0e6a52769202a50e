"""The command line: parse, one call, print.

Entered by: main.
"""
