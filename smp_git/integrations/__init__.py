"""What other programs speak to: each an extra, nothing imported unless asked for.

Entered by: claude_code.calls, claude_code.hooks,
claude_code.install, loopback, mcp.clients, mcp.desk, mcp.serve, notes.
"""
