"""A session looked after: made, checked, guarded.

Entered by: anonymize, check, every, hooks.install, hooks.merge, hooks.proposal, hooks.push,
opening, stores.
"""
