"""A session looked after: made, checked, guarded."""
