-- Domains of projects' own.
CREATE TABLE domains (
    project     BIGINT  NOT NULL REFERENCES projects (id),
    environment TEXT    COLLATE "C" NOT NULL CHECK (environment IN ('dev', 'prod')),
    name        TEXT    COLLATE "C" NOT NULL CHECK (name <> ''),
    -- What the TXT record has. A claim that is made anew has another one.
    token       TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('pending', 'active', 'failing')),
    canonical   BOOLEAN NOT NULL,
    -- What the last look found, if it was not in order.
    detail      TEXT,
    created_at  BIGINT  NOT NULL,
    -- Since when it has its state.
    since       BIGINT  NOT NULL,
    proven_at   BIGINT,
    looked_at   BIGINT,
    -- When it is to be looked at again.
    look_at     BIGINT,
    CONSTRAINT domains_key PRIMARY KEY (project, name)
);

-- Many projects may claim a domain, and one has it.
CREATE UNIQUE INDEX domains_in_service ON domains (name) WHERE state <> 'pending';
CREATE UNIQUE INDEX domains_canonical ON domains (project, environment) WHERE canonical;
CREATE INDEX domains_to_look_at ON domains (look_at) WHERE look_at IS NOT NULL;
CREATE INDEX domains_pending ON domains (since) WHERE state = 'pending';
