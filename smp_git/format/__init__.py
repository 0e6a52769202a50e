"""The bytes of a session: ids and paths, memory files, index lines, messages.

Entered by: config, dialect, document, imports, jsontext, lines, messages, metadata,
readme, records, yamlfile.
"""
