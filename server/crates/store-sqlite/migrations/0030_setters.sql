-- Who set where data of a project goes: its owner looks at it when that person leaves. Null if it was
-- set before this column existed, or by the operator. An account, which is never removed: no foreign key,
-- for which each removal of a guest would look here.
ALTER TABLE webhooks ADD COLUMN set_by BLOB;
ALTER TABLE environment_settings ADD COLUMN backend_set_by BLOB;
