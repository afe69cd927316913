-- Projects that their owners offer to one of their developers, who has not accepted yet. Accounts are never
-- removed: no foreign keys, for which each removal of a guest would look here.
CREATE TABLE handovers (
    project    INTEGER NOT NULL PRIMARY KEY REFERENCES projects (id),
    -- Who offers it. After another account got the project, the offer does not count.
    owner      BLOB    NOT NULL,
    heir       BLOB    NOT NULL,
    offered_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
