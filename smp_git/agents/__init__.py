"""What one agent may see of a session and do there: its interface, workflows, joint work.

Entered by: agent, fence, joint, messages, requirements, transaction, values, workflow, writing.
"""
