-- The newest sequence of the document store that was durable, a second late at most: documents that
-- end before it have lost commits. 0 where none is known.

alter table environment add column documents_sequence integer not null default 0;
