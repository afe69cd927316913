-- Certificates that an ACME server issued, by the name that they are for.
CREATE TABLE certificates (
    name        TEXT    NOT NULL PRIMARY KEY,
    -- The directory of the server that issued it.
    directory   TEXT    NOT NULL,
    -- The certificate and its chain, PEM, and its private key, PKCS#8.
    chain       TEXT    NOT NULL,
    private     BLOB    NOT NULL,
    sealed      INTEGER NOT NULL CHECK (sealed IN (0, 1)),
    valid_from  INTEGER NOT NULL,
    valid_until INTEGER NOT NULL,
    obtained_at INTEGER NOT NULL
) STRICT;

-- Accounts at ACME servers.
CREATE TABLE acme_accounts (
    directory   TEXT    NOT NULL PRIMARY KEY,
    credentials BLOB    NOT NULL,
    sealed      INTEGER NOT NULL CHECK (sealed IN (0, 1)),
    created_at  INTEGER NOT NULL
) STRICT;

-- What is going on with certificates: until when one is being ordered, how often that failed in a row and from
-- when it may be tried again, and what answers the challenge.
CREATE TABLE certificate_orders (
    name            TEXT    NOT NULL PRIMARY KEY,
    busy_until      INTEGER,
    failures        INTEGER NOT NULL DEFAULT 0,
    not_before      INTEGER,
    challenge       BLOB    CHECK (length(challenge) = 32),
    challenge_until INTEGER
) STRICT;

-- The orders of the last hour, which limits count.
CREATE TABLE certificate_order_times (
    id       INTEGER PRIMARY KEY,
    name     TEXT    NOT NULL,
    begun_at INTEGER NOT NULL
) STRICT;
