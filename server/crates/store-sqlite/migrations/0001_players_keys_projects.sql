-- Players, their sessions, signing keys, projects and what is deployed there.
-- Times are milliseconds since the Unix epoch; ids are UUIDs of 16 bytes.

CREATE TABLE players (
    id                BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    username          TEXT    NOT NULL CHECK (length(username) BETWEEN 3 AND 24),
    -- The name without regard to case, folded by the program, since SQLite
    -- folds ASCII alone.
    username_key      TEXT    NOT NULL UNIQUE,
    linked            INTEGER NOT NULL DEFAULT 0 CHECK (linked IN (0, 1)),
    merged_into       BLOB    REFERENCES players (id),
    suspended_at      INTEGER,
    suspension_reason TEXT,
    -- The network address that the guest came from (IPv4, or IPv6 /64).
    address           TEXT,
    created_at        INTEGER NOT NULL,
    CHECK (merged_into IS NULL OR linked = 0),
    CHECK (suspension_reason IS NULL OR suspended_at IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    -- SHA-256 of the cookie's secret.
    hash       BLOB    NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
    player     BLOB    NOT NULL REFERENCES players (id),
    created_at INTEGER NOT NULL,
    renewed_at INTEGER NOT NULL CHECK (renewed_at >= created_at),
    ended_at   INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_of_player ON sessions (player);

CREATE TABLE signing_keys (
    -- The order in which keys were added, whatever the clocks said.
    position   INTEGER PRIMARY KEY AUTOINCREMENT,
    kid        TEXT    NOT NULL UNIQUE CHECK (length(kid) = 43),
    private    BLOB    NOT NULL,
    sealed     INTEGER NOT NULL CHECK (sealed IN (0, 1)),
    created_at INTEGER NOT NULL,
    signs_from INTEGER NOT NULL
) STRICT;

CREATE TABLE projects (
    id         INTEGER PRIMARY KEY,
    slug       TEXT    NOT NULL UNIQUE,
    owner      BLOB    REFERENCES players (id),
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE deployments (
    id          BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    project     INTEGER NOT NULL REFERENCES projects (id),
    environment TEXT    NOT NULL CHECK (environment IN ('dev', 'prod')),
    created_at  INTEGER NOT NULL,
    UNIQUE (project, environment, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE deployment_files (
    deployment BLOB    NOT NULL REFERENCES deployments (id),
    path       TEXT    NOT NULL CHECK (path <> ''),
    sha256     BLOB    NOT NULL CHECK (length(sha256) = 32),
    size       INTEGER NOT NULL CHECK (size >= 0),
    PRIMARY KEY (deployment, path)
) STRICT, WITHOUT ROWID;

-- Which deployment an environment shows; no row before the first one.
CREATE TABLE current_deployments (
    project     INTEGER NOT NULL,
    environment TEXT    NOT NULL,
    deployment  BLOB    NOT NULL,
    PRIMARY KEY (project, environment),
    FOREIGN KEY (project, environment, deployment)
        REFERENCES deployments (project, environment, id)
) STRICT, WITHOUT ROWID;
