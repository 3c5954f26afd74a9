-- A revision is published by an operator or, with a development key, by an application credential:
-- the column has the ID of either.

alter table workspace_revisions rename column operator_id to publisher_id;
