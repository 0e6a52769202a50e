"""Recovery: what was deleted, kept sealed until its deadline, and brought back or destroyed.

`selection`    which memories a deletion is about
`deletion`     memories deleted: sealed, then erased
`redaction`    a text taken out of every version of every memory
`trash`        the folder `deleted/` of a store, its copies and their records
`restore`      memories brought back as a life of their own
`purge`        copies and their keys destroyed
`sessions`     whole sessions moved away and back
`anonymize`    a session without names; `takeover` puts its memories into a new one
`seal`, `keys` encryption, and where its keys stand
`record`, `audit`, `receipts` what is written down, without content
`site`         one session and its trash, which all of these work on
"""
