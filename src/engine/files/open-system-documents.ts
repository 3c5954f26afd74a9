/** The system tables of a store that no engine has open, for tools on a stopped server. */
import type { DocumentStore } from '../../documents/store.ts'
import type { System } from '../../system/system.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import { Committer } from '../commits/committer.ts'
import { SystemDocuments } from './system-documents.ts'
import { SystemTablesLoader } from './system-tables.ts'

export function openSystemDocuments(store: DocumentStore, system: System): SystemDocuments {
  const metrics = new Metrics(system)
  const committer = new Committer({ store, system, metrics, onCommit: () => undefined })
  const tables = new SystemTablesLoader(store, committer)
  return new SystemDocuments({ store, committer, system, tables })
}
