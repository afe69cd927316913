-- Previews of projects: what each of them shows, and when it was last used.
CREATE TABLE previews (
    project    BIGINT NOT NULL REFERENCES projects (id),
    name       TEXT   COLLATE "C" NOT NULL CHECK (name <> ''),
    deployment UUID   NOT NULL REFERENCES deployments (id),
    created_at BIGINT NOT NULL,
    -- The beginning of the day.
    used_at    BIGINT NOT NULL,
    CONSTRAINT previews_name PRIMARY KEY (project, name)
);

CREATE UNIQUE INDEX previews_of_deployment ON previews (deployment);
CREATE INDEX previews_by_use ON previews (used_at);

-- The name of the preview that a deployment was made for. An environment does not list it.
ALTER TABLE deployments ADD COLUMN preview TEXT;
