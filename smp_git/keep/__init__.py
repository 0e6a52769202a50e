"""A session looked after: made, checked, guarded, kept small.

Entered by: anonymize, archive, check, compact, compacted, configure, every,
forecast, glance, hooks.install, hooks.merge, hooks.proposal, hooks.push, info, log,
losses, maintenance, mask, opening, quota, recall, repair, repairs, schedules, stats, stores,
syncing, usage.
"""
