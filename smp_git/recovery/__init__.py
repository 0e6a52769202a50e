"""Recovery: what was deleted, kept sealed until its deadline, and brought back or destroyed.

`deletion`     memories deleted: sealed, then erased
`redaction`    a text taken out of every version of every memory
`trash`        the folder `deleted/` of a store
`restore`      memories brought back as their next generation
`purge`        sealed copies and their keys destroyed
`sessions`     whole sessions moved away and back
`anonymize`    a copy of a session without names
`seal`, `keys` encryption, and where its keys stand
`record`, `audit`, `receipts` what is written down, without content
"""
