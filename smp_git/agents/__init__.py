"""What one agent may see of a session and do there: its interface, workflows, joint work.

Entered by: agent, fence, requirements, values, workflow, writing.
"""
