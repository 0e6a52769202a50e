"""A session on several machines: what comes in, what goes out, what is known of remotes.

Entered by: exchange, inspect.inspection, inspect.structure, integrate, outbound, remotes,
twins.
"""
