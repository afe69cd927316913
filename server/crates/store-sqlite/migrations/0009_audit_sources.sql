-- Where the acts that the log of security events tells of came from.

-- The network (IPv4, or IPv6 /64) and the id of the request; null for what the
-- platform or its operator did.
ALTER TABLE audit_events ADD COLUMN network TEXT;
ALTER TABLE audit_events ADD COLUMN request TEXT;
-- What was done, beyond the subject: the environment and the deployment of a
-- project, or why a sign-in failed.
ALTER TABLE audit_events ADD COLUMN detail TEXT;

-- For sweeping what is too old.
CREATE INDEX audit_events_by_age ON audit_events (at);
CREATE INDEX audit_events_with_source ON audit_events (at) WHERE network IS NOT NULL;
