-- Taking projects down: who disabled or deleted one, and when. Of one that was
-- removed the slug alone is left, so that nobody gets it again.
ALTER TABLE projects ADD COLUMN disabled_at INTEGER;
ALTER TABLE projects ADD COLUMN disabled_by TEXT CHECK (disabled_by IN ('owner', 'platform'));
ALTER TABLE projects ADD COLUMN disabled_reason TEXT;
ALTER TABLE projects ADD COLUMN deleted_at INTEGER;
ALTER TABLE projects ADD COLUMN deleted_by TEXT CHECK (deleted_by IN ('owner', 'platform'));
ALTER TABLE projects ADD COLUMN removed_at INTEGER;
-- When browsers were last to forget what the game had stored.
ALTER TABLE projects ADD COLUMN forget_from INTEGER;
