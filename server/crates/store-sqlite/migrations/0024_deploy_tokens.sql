-- Secrets with which programs deploy one project or read its logs.
CREATE TABLE deploy_tokens (
    id         BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    project    INTEGER NOT NULL REFERENCES projects (id),
    name       TEXT    NOT NULL CHECK (name <> ''),
    -- The names of its scopes, with spaces between.
    scopes     TEXT    NOT NULL CHECK (scopes <> ''),
    -- SHA-256 of its text.
    hash       BLOB    NOT NULL CHECK (length(hash) = 32),
    -- A player.
    created_by BLOB    NOT NULL CHECK (length(created_by) = 16),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    -- The beginning of the day.
    used_at    INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX deploy_tokens_of_project ON deploy_tokens (project);

-- The name of the deploy token that a deployment was made with.
ALTER TABLE deployments ADD COLUMN deploy_token TEXT;
