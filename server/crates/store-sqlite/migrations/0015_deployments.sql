-- Who deployed what, from where and why. The order of deployments is kept by a
-- number, so that their ids can be random: of two that were made in the same
-- minute, the first characters tell which is which.
ALTER TABLE deployments ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
ALTER TABLE deployments ADD COLUMN deployed_by BLOB;
ALTER TABLE deployments ADD COLUMN client TEXT;
ALTER TABLE deployments ADD COLUMN network TEXT;
ALTER TABLE deployments ADD COLUMN message TEXT;
ALTER TABLE deployments ADD COLUMN revision TEXT;
