/** The system tables of a store that no engine has open, for tools on a stopped server. */
import type { DocumentStore } from '../../documents/store.ts'
import type { System } from '../../system/system.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import { Committer } from '../commits/committer.ts'
import { SystemTablesLoader } from '../tables/system-tables.ts'
import { SystemDocuments } from './system-documents.ts'

export function openSystemDocuments(store: DocumentStore, system: System): SystemDocuments {
  const metrics = new Metrics(system)
  const committer = new Committer({
    store,
    system,
    metrics,
    onCommit: (_, { files = [] }) => documents.notify(files),
  })
  const tables = new SystemTablesLoader(store, committer)
  const documents = new SystemDocuments({ store, committer, system, tables })
  return documents
}
