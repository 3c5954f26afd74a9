-- The application credential that made a change of a Workspace with its development key. Such a
-- record has no operator.

alter table service_platform_audit add column credential_id text collate "C";
