-- Frontend log records, in a database of their own: a flood of them waits for
-- itself alone. Times are milliseconds since the Unix epoch; ids of players,
-- deployments and pages are of 16 bytes.

-- The environments that records came from, so that a row names one in a byte.
CREATE TABLE log_environments (
    id          INTEGER PRIMARY KEY,
    project     TEXT NOT NULL,
    environment TEXT NOT NULL CHECK (environment IN ('dev', 'prod')),
    UNIQUE (project, environment)
) STRICT;

CREATE TABLE log_records (
    -- The time of receipt times 2^20, and a number within the millisecond:
    -- what came later lies later, and what is old is one range.
    id          INTEGER PRIMARY KEY,
    environment INTEGER NOT NULL REFERENCES log_environments (id),
    -- 0 debug, 1 info, 2 warn, 3 error.
    level       INTEGER NOT NULL CHECK (level BETWEEN 0 AND 3),
    source      TEXT    NOT NULL,
    deployment  BLOB    CHECK (length(deployment) = 16),
    player      BLOB    CHECK (length(player) = 16),
    page        BLOB    NOT NULL CHECK (length(page) = 16),
    -- When it came up in the page.
    time        INTEGER NOT NULL,
    message     TEXT    NOT NULL,
    stack       TEXT,
    url         TEXT,
    line        INTEGER,
    "column"    INTEGER,
    -- JSON, as the game wrote it.
    metadata    TEXT,
    count       INTEGER NOT NULL CHECK (count >= 1)
) STRICT;

-- Every entry ends with the row's id, so the newest of an environment and
-- level are one range of it.
CREATE INDEX log_records_of_environment ON log_records (environment, level);
