"""A session looked after: made, checked, guarded.

Entered by: anonymize, archive, check, configure, every, hooks.install, hooks.merge, hooks.proposal, hooks.push,
opening, stores.
"""
