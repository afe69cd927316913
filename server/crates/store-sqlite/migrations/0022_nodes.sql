-- What changed, for the server that keeps it in memory. The operator's commands change the store in
-- processes of their own. Nodes and leases are only used by stores that several servers share; they
-- are here because every store has the same operations.
CREATE TABLE change_counter (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    last INTEGER NOT NULL
) STRICT;
INSERT INTO change_counter (id, last) VALUES (1, 0);

CREATE TABLE changes (
    topic   TEXT    NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX changes_by_version ON changes (version);

CREATE TABLE nodes (
    id           BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    address      TEXT    NOT NULL,
    program      TEXT    NOT NULL,
    settings     TEXT    NOT NULL,
    started_at   INTEGER NOT NULL,
    seen_at      INTEGER NOT NULL,
    applied      INTEGER NOT NULL,
    clock_offset INTEGER,
    degraded     TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
    name   TEXT    NOT NULL PRIMARY KEY,
    holder BLOB    NOT NULL CHECK (length(holder) = 16),
    until  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE ranking (
    position INTEGER PRIMARY KEY,
    slug     TEXT    NOT NULL,
    players  INTEGER NOT NULL
) STRICT;
