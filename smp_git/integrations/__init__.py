"""What other programs speak to: each an extra, nothing imported unless asked for.

Entered by: mcp.clients, mcp.desk, mcp.serve.
"""
