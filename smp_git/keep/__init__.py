"""A session looked after: made, checked, guarded.

Entered by: anonymize, check, configure, every, hooks.install, hooks.merge, hooks.proposal, hooks.push,
opening, stores.
"""
