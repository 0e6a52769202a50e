"""All memories at one commit, and what a replica keeps for itself.

Entered by: archives, changes, compactions, counts, derived, history, imported, pages, places,
replica, sizes, snapshot, values.
"""
