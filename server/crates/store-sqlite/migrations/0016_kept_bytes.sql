-- What the deployments of a project take of the disk, as it was last counted;
-- null where it was never counted.
ALTER TABLE projects ADD COLUMN kept_bytes INTEGER;
