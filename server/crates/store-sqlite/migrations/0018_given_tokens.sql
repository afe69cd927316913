-- Whether a test player's token was given lately is looked for with every one.

CREATE INDEX audit_events_of_given ON audit_events (subject, detail, at)
    WHERE kind = 'test-token-given';
