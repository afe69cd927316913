-- Projects that their owners offer to one of their developers, who has not accepted yet. Accounts are never
-- removed: no foreign keys, for which each removal of a guest would look here.
CREATE TABLE handovers (
    project    BIGINT NOT NULL CONSTRAINT handovers_project PRIMARY KEY REFERENCES projects (id),
    -- Who offers it. After another account got the project, the offer does not count.
    owner      UUID   NOT NULL,
    heir       UUID   NOT NULL,
    offered_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
