-- Domains of projects' own.
CREATE TABLE domains (
    project     INTEGER NOT NULL REFERENCES projects (id),
    environment TEXT    NOT NULL CHECK (environment IN ('dev', 'prod')),
    name        TEXT    NOT NULL CHECK (name <> ''),
    -- What the TXT record has. A claim that is made anew has another one.
    token       TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('pending', 'active', 'failing')),
    canonical   INTEGER NOT NULL CHECK (canonical IN (0, 1)),
    -- What the last look found, if it was not in order.
    detail      TEXT,
    created_at  INTEGER NOT NULL,
    -- Since when it has its state.
    since       INTEGER NOT NULL,
    proven_at   INTEGER,
    looked_at   INTEGER,
    -- When it is to be looked at again.
    look_at     INTEGER,
    PRIMARY KEY (project, name)
) STRICT, WITHOUT ROWID;

-- Many projects may claim a domain, and one has it.
CREATE UNIQUE INDEX domains_in_service ON domains (name) WHERE state <> 'pending';
CREATE UNIQUE INDEX domains_canonical ON domains (project, environment) WHERE canonical = 1;
CREATE INDEX domains_to_look_at ON domains (look_at) WHERE look_at IS NOT NULL;
CREATE INDEX domains_pending ON domains (since) WHERE state = 'pending';
