"""Erasure: memories taken out of history, physically, with proof.

The only part of the program that rewrites history or deletes objects. Its doors:

`smp_git.remove.history.erase`
    `rewrite(writer, order) -> Receipt` is one deletion: plan, seal, publish, sweep, prove.
    The `seal` of the order gets every version that is about to go, under the session's
    lock, and must return only when its copy is durable; if it raises, nothing has changed.
    `resume(writer)` finishes or undoes an interrupted deletion (called on open).
`smp_git.remove.history.plan`
    `effective(reader) -> Tombstones`: everything that is known to be deleted.
    `RewritePlan`: the rewrite in memory, by the `Rewriter`, which is a pure function.
`smp_git.remove.history.prove`
    `verify(reader, tombstones, versions=()) -> Proof`: the scan, at any time.
"""
