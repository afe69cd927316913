-- Events with an address that may have to be shortened.
CREATE INDEX audit_events_with_address ON audit_events (at)
    WHERE network IS NOT NULL AND substr(network, -3) NOT IN ('/24', '/48');
