-- Secrets that all servers of one store have in common, by what they are for.
CREATE TABLE shared_secrets (
    name   TEXT  COLLATE "C" NOT NULL PRIMARY KEY,
    secret BYTEA NOT NULL CHECK (length(secret) = 32)
);
