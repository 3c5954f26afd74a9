-- Where a revision comes from, as its publisher declared it: message, commit, branch, pipeline run.
-- Canonical JSON; null for a publication that declared nothing.

alter table workspace_revisions
  add column provenance text check (length(provenance) between 2 and 4096);
