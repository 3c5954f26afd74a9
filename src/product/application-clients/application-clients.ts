/** Application Clients: who calls the application API, as which kind, with which scopes at most. */
import { Fault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import {
  type ApplicationClient,
  type ApplicationKind,
  countClients,
  findClient,
  insertClient,
  listClients as listRows,
} from '../../storage/control/application-clients.ts'
import type { System } from '../../system/system.ts'
import { APPLICATION_SCOPES, type ApplicationScope } from '../../value/application-scopes.ts'
import type { ClientId, RequestId } from '../../value/ids.ts'
import { isName } from '../../value/names.ts'
import type { Product } from '../product.ts'

export type { ApplicationClient } from '../../storage/control/application-clients.ts'

export const CLIENTS_MAX = 1_000
/** How far the caller's clock, which pins a creation, may be from ours. */
const CLOCK_DIFFERENCE_MAX_MICROS = 24n * 60n * 60n * 1_000_000n

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

export function listClients({ root }: Pick<Product, 'root'>): ApplicationClient[] {
  return root.control.read(listRows)
}

/**
 * Creates, or answers an exact replay. Throws PRODUCT_INVALID, PRODUCT_OPERATION_REUSED where the
 * ID was used with other content, PRODUCT_STATE_CONFLICT where there are too many.
 */
export function createClient(
  { system, root, audit }: Pick<Product, 'system' | 'root' | 'audit'>,
  actor: Actor,
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
      if (!sameClient(earlier, client)) throw new Fault('PRODUCT_OPERATION_REUSED')
      return { client: earlier, replayed: true }
    }
    requireRecent(system, client.createdAtMicros)
    if (countClients(tx) >= CLIENTS_MAX) {
      throw new Fault('PRODUCT_STATE_CONFLICT', { detail: `${CLIENTS_MAX} Application Clients` })
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

/** At least one of `allowed`, each once; answers them sorted. Throws PRODUCT_INVALID. */
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

/** Throws PRODUCT_INVALID unless the caller's time is within 24 hours of ours. */
export function requireRecent(
  system: Pick<System, 'nowMicros'>,
  atMicros: bigint,
  path: 'createdAtMicros' | 'changedAtMicros' = 'createdAtMicros',
): void {
  const difference = system.nowMicros() - atMicros
  if (difference > CLOCK_DIFFERENCE_MAX_MICROS || difference < -CLOCK_DIFFERENCE_MAX_MICROS) {
    throw invalid(path, 'within 24 hours of the server time')
  }
}

/** Development keys synchronize Workspaces and never invoke a Function. */
function allowedScopes(kind: ApplicationKind): readonly ApplicationScope[] {
  return kind === 'development' ? ['workspace'] : APPLICATION_SCOPES
}

function sameClient(a: ApplicationClient, b: ApplicationClient): boolean {
  return (
    a.name === b.name &&
    a.kind === b.kind &&
    a.createdAtMicros === b.createdAtMicros &&
    a.maximumScopes.join() === b.maximumScopes.join()
  )
}

function invalid(path: string, rule: string): Fault {
  return new Fault('PRODUCT_INVALID', { violations: [{ path, rule }] })
}
