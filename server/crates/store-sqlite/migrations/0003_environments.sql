-- What is set for an environment, how large deployments are, and test players.

CREATE INDEX projects_of_owner ON projects (owner) WHERE owner IS NOT NULL;
-- For finding files that no deployment has any more.
CREATE INDEX deployment_files_by_content ON deployment_files (sha256);

-- A deployment never changes, so what it adds up to is counted once.
ALTER TABLE deployments ADD COLUMN files INTEGER NOT NULL DEFAULT 0;
ALTER TABLE deployments ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE deployments SET
    files = (SELECT count(*) FROM deployment_files f WHERE f.deployment = deployments.id),
    bytes = (SELECT coalesce(sum(size), 0) FROM deployment_files f
             WHERE f.deployment = deployments.id);

CREATE TABLE environment_settings (
    project       INTEGER NOT NULL REFERENCES projects (id),
    environment   TEXT    NOT NULL CHECK (environment IN ('dev', 'prod')),
    backend_url   TEXT,
    -- A JSON array of paths.
    backend_paths TEXT    CHECK (backend_paths IS NULL OR json_valid(backend_paths)),
    isolated      INTEGER NOT NULL DEFAULT 0 CHECK (isolated IN (0, 1)),
    PRIMARY KEY (project, environment),
    CHECK ((backend_url IS NULL) = (backend_paths IS NULL))
) STRICT, WITHOUT ROWID;

-- Test users and test guests: nobody's accounts, so they are no players.
CREATE TABLE test_players (
    project  INTEGER NOT NULL REFERENCES projects (id),
    is_guest INTEGER NOT NULL CHECK (is_guest IN (0, 1)),
    number   INTEGER NOT NULL CHECK (number BETWEEN 1 AND 10),
    id       BLOB    NOT NULL UNIQUE CHECK (length(id) = 16),
    PRIMARY KEY (project, is_guest, number)
) STRICT, WITHOUT ROWID;
