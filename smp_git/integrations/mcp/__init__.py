"""Model Context Protocol: a store as a server of tools, resources and a prompt."""
