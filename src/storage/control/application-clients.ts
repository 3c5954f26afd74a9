/** Rows of application_clients. */
import type { ApplicationScope } from '../../value/application-scopes.ts'
import type { ClientId } from '../../value/ids.ts'
import type { ControlReader, ControlTx } from './database.ts'
import { joinScopes, splitScopes } from './scopes.ts'

export type ApplicationKind = 'public' | 'confidential' | 'development'

export interface ApplicationClient {
  readonly clientId: ClientId
  readonly name: string
  readonly kind: ApplicationKind
  /** Sorted, each once. */
  readonly maximumScopes: readonly ApplicationScope[]
  readonly createdAtMicros: bigint
}

interface Row {
  client_id: ClientId
  name: string
  kind: ApplicationKind
  maximum_scopes: string
  created_at: number
}

const COLUMNS = 'client_id, name, kind, maximum_scopes, created_at'

export function findClient(reader: ControlReader, id: ClientId): ApplicationClient | null {
  const row = reader.get<Row>(`select ${COLUMNS} from application_clients where client_id = ?`, id)
  return row === null ? null : toClient(row)
}

export function listClients(reader: ControlReader): ApplicationClient[] {
  return reader
    .all<Row>(`select ${COLUMNS} from application_clients order by client_id`)
    .map(toClient)
}

export function countClients(reader: ControlReader): number {
  return reader.get<{ count: number }>('select count(*) as count from application_clients')!.count
}

export function insertClient(tx: ControlTx, client: ApplicationClient): void {
  tx.run(
    `insert into application_clients (client_id, name, kind, maximum_scopes, created_at)
     values (?, ?, ?, ?, ?)`,
    client.clientId,
    client.name,
    client.kind,
    joinScopes(client.maximumScopes),
    client.createdAtMicros,
  )
}

function toClient(row: Row): ApplicationClient {
  return {
    clientId: row.client_id,
    name: row.name,
    kind: row.kind,
    maximumScopes: splitScopes(row.maximum_scopes),
    createdAtMicros: BigInt(row.created_at),
  }
}
