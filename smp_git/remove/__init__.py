"""Removal: what is deleted is kept sealed until its deadline, and brought back or destroyed.

`delete`        memories selected, sealed, erased; what was deleted elsewhere; branches
`restore`       memories brought back as a life of their own
`purge`         copies and their keys destroyed
`redact`        a text taken out of every version of every memory: `rewording` is what
                takes its place, `wanted` the text in all its forms, `traces` where it is
`sessions`      whole sessions moved away and back
`forgotten`     what deleted and purged sessions were imported from
`reports`       the trash, receipts, the audit log, the proof
`interrupted`   what a process that died left, finished
`meeting`       what each branch gets where lives of a memory died or met
`site`          one session and its trash, which all of these work on
`trash`, `seal` the folder `deleted/` of a store; encryption, and where its keys are
`audit`         what is written down, without content: records, receipts, the audit log
`history/`      memories taken out of history, physically, with proof
"""
