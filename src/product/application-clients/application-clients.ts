/** Application Clients: callers of the application API, each with a kind and maximum scopes. */

import { Fault } from '../../errors/fault.ts'
import type { RecordedActor } from '../../identity/actor.ts'
import {
  type ApplicationClient,
  type ApplicationKind,
  countClients,
  findClient,
  insertClient,
  listClients as listRows,
} from '../../storage/control/application-clients.ts'
import type { ControlReader } from '../../storage/control/database.ts'
import { findEnvironment } from '../../storage/control/environment.ts'
import { requireRecent } from '../../system/client-clock.ts'
import { APPLICATION_SCOPES, type ApplicationScope } from '../../value/application-scopes.ts'
import type { ClientId, RequestId } from '../../value/ids.ts'
import { isName } from '../../value/names.ts'
import type { ChangePorts, RootPort } from '../ports.ts'
import { limitReached, stateConflict } from '../resource-faults.ts'

export type { ApplicationClient } from '../../storage/control/application-clients.ts'

/**
 * The list of them has no pages, so this bounds its response.
 * @limit Identity and keys: Application Clients of an Environment
 */
export const CLIENTS_MAX = 1_000

export interface ClientInput {
  readonly clientId: ClientId
  readonly name: string
  readonly kind: ApplicationKind
  readonly maximumScopes: readonly ApplicationScope[]
  readonly createdAtMicros: bigint
  readonly requestId: RequestId
}

export interface ClientCreated {
  readonly client: ApplicationClient
  readonly replayed: boolean
}

export function listClients({ root }: RootPort): ApplicationClient[] {
  return root.control.read(listRows)
}

/**
 * Creates an Application Client; returns the existing one to an exact repeat. Throws
 * PRODUCT_INVALID, PRODUCT_OPERATION_REUSED if the ID was used with other content,
 * PRODUCT_STATE_CONFLICT if there are too many, and for the kind `development` in production.
 */
export function createClient(
  { system, root, audit }: ChangePorts,
  actor: RecordedActor,
  input: ClientInput,
): ClientCreated {
  const client: ApplicationClient = {
    clientId: input.clientId,
    name: requireName(input.name),
    kind: input.kind,
    maximumScopes: requireScopes(input.maximumScopes, allowedScopes(input.kind), 'maximumScopes'),
    createdAtMicros: input.createdAtMicros,
  }
  const created = root.control.transaction((tx): ClientCreated => {
    const earlier = findClient(tx, client.clientId)
    if (earlier !== null) {
      if (!isSameClient(earlier, client)) throw new Fault('PRODUCT_OPERATION_REUSED')
      return { client: earlier, replayed: true }
    }
    requireRecent(system, client.createdAtMicros, 'createdAtMicros')
    if (client.kind === 'development') requireDevelopable(tx)
    if (countClients(tx) >= CLIENTS_MAX) {
      throw limitReached('clientId', CLIENTS_MAX, 'Application Clients')
    }
    insertClient(tx, client)
    audit.append(tx, actor, {
      operation: 'product.application_client.create',
      subject: client.clientId,
      requestId: input.requestId,
    })
    return { client, replayed: false }
  })
  audit.deliver()
  return created
}

/** Throws PRODUCT_INVALID. */
export function requireName(name: string): string {
  if (isName(name)) return name
  throw invalid('name', '1 to 128 characters, NFC, without control characters')
}

/** Throws PRODUCT_STATE_CONFLICT in production, where development keys are rejected. */
function requireDevelopable(reader: ControlReader): void {
  const { purpose } = findEnvironment(reader)!.configuration
  if (purpose !== 'production') return
  const rule = 'public or confidential: the purpose of the Environment is production'
  throw stateConflict({ path: 'kind', rule, detail: 'the kind development in production' })
}

/** Returns the scopes sorted: at least one of `allowed`, each once. Throws PRODUCT_INVALID. */
export function requireScopes(
  scopes: readonly ApplicationScope[],
  allowed: readonly ApplicationScope[],
  path: string,
): ApplicationScope[] {
  if (scopes.length === 0 || new Set(scopes).size !== scopes.length) {
    throw invalid(path, 'at least one scope, each once')
  }
  if (scopes.some((scope) => !allowed.includes(scope))) {
    throw invalid(path, `scopes of ${allowed.join(', ')}`)
  }
  return scopes.toSorted()
}

/** Returns the scopes of a kind: development keys publish Workspaces and never invoke Functions. */
function allowedScopes(kind: ApplicationKind): readonly ApplicationScope[] {
  return kind === 'development' ? ['workspace'] : APPLICATION_SCOPES
}

function isSameClient(one: ApplicationClient, other: ApplicationClient): boolean {
  return (
    one.name === other.name &&
    one.kind === other.kind &&
    one.createdAtMicros === other.createdAtMicros &&
    one.maximumScopes.join() === other.maximumScopes.join()
  )
}

function invalid(path: string, rule: string): Fault {
  return new Fault('PRODUCT_INVALID', { violations: [{ path, rule }] })
}
