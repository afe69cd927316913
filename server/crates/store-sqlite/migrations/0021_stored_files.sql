-- Files in a file store that several nodes share. Files in a folder have no rows.
CREATE TABLE stored_files (
    sha256     BLOB    NOT NULL PRIMARY KEY CHECK (length(sha256) = 32),
    -- When a deploy last used it.
    touched_at INTEGER NOT NULL,
    -- Since when a sweep removes it; null if none does.
    claimed_at INTEGER
) STRICT, WITHOUT ROWID;
