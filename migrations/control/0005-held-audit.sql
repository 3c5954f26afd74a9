-- Audit records of changes in the document store, which is another database: a record is held from
-- before its change until the change is known to be committed.

alter table audit_outbox add column held integer not null default 0 check (held in (0, 1));
