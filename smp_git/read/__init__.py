"""All memories at one commit, and what a replica keeps for itself.

Entered by: archives, counts, history, pages, replica, snapshot.
"""
