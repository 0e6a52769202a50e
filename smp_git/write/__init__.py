"""One writer at a time, one commit a write.

Entered by: batch, branches, commit, edits, hand_edits, handle, merge.join, merge.masking,
merge.meeting, merge.memories, merge.versions, recovery, stage, transaction, undo, values, writer.
"""
