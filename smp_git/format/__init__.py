"""The bytes of a session: ids and paths, memory files, index lines, messages.

Entered by: config, dialect, document, imports, lines, messages, metadata, records, yamlfile.
"""
