"""Git, reduced to the verbs a session needs.

Entered by: addresses, command, connections, disk, layout, locks, objects, packing, references, repository, staging,
storage, survey, transport.
"""
