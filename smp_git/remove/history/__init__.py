"""Erasure: memories taken out of history, physically, with proof.

The only part of the program that rewrites history or deletes objects. Its doors:

`smp_git.remove.history.erase`
    `erase(writer, ids, order) -> Receipt` takes memories out of every reference, removes
    their objects and proves it; `rewrite` is the order of its steps. The `seal` of the
    `RewriteOrder` gets every `DeadVersion` that is about to go, under the session's lock, and must
    return only when its copy is durable; if it raises, nothing has changed.
    `resume(writer)` finishes or undoes an interrupted deletion (called
    on open).
`smp_git.remove.history.rewrite`
    `Rewriter`: the rewrite as a pure function of history and tombstones.
`smp_git.remove.history.prove`
    `verify(reader, tombstones, versions=()) -> Proof`: the scan, at any time.
`smp_git.format.records`
    `Tombstone`, `Tombstones`: what was deleted, merged by maximum.
`smp_git.remove.history.plan`
    `effective(reader) -> Tombstones`: the union over all references and the local copy.
"""
