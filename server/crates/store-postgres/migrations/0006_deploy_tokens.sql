-- Secrets with which programs deploy one project or read its logs.
CREATE TABLE deploy_tokens (
    id         UUID   NOT NULL CONSTRAINT deploy_tokens_id PRIMARY KEY,
    project    BIGINT NOT NULL REFERENCES projects (id),
    name       TEXT   NOT NULL CHECK (name <> ''),
    -- The names of its scopes, with spaces between.
    scopes     TEXT   COLLATE "C" NOT NULL CHECK (scopes <> ''),
    -- SHA-256 of its text.
    hash       BYTEA  NOT NULL CHECK (octet_length(hash) = 32),
    -- A player.
    created_by UUID   NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- The beginning of the day.
    used_at    BIGINT,
    revoked_at BIGINT
);

CREATE INDEX deploy_tokens_of_project ON deploy_tokens (project);

-- The name of the deploy token that a deployment was made with.
ALTER TABLE deployments ADD COLUMN deploy_token TEXT;
