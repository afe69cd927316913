-- Previews of projects: what each of them shows, and when it was last used.
CREATE TABLE previews (
    project    INTEGER NOT NULL REFERENCES projects (id),
    name       TEXT    NOT NULL CHECK (name <> ''),
    deployment BLOB    NOT NULL REFERENCES deployments (id),
    created_at INTEGER NOT NULL,
    -- The beginning of the day.
    used_at    INTEGER NOT NULL,
    PRIMARY KEY (project, name)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX previews_of_deployment ON previews (deployment);
CREATE INDEX previews_by_use ON previews (used_at);

-- The name of the preview that a deployment was made for. An environment does not list it.
ALTER TABLE deployments ADD COLUMN preview TEXT;
