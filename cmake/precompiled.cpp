// Empty: a precompiled header belongs to a target, and a target has a source.
