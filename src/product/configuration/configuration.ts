/**
 * Variables and secrets of the Environment. Every change names the revision of the whole
 * configuration that it follows, so no operator overwrites another operator's change unseen.
 */

import { Fault } from '../../errors/fault.ts'
import type { RecordedActor } from '../../identity/actor.ts'
import {
  type ConfigurationChange,
  type ConfigurationEntry,
  type ConfigurationKind,
  countEntries,
  deleteEntry,
  findEntry,
  getConfigurationRevision,
  insertChange,
  insertEntry,
  listChanges,
  listEntries,
} from '../../storage/control/configuration.ts'
import type { ControlTx } from '../../storage/control/database.ts'
import { seal } from '../../storage/sealing.ts'
import { CONFIGURATION_VALUE_BYTES_MAX, isConfigurationName } from '../../value/configuration.ts'
import type { OperationId, RequestId } from '../../value/ids.ts'
import { Secret } from '../../value/secret.ts'
import { applyOnce, type Operation } from '../idempotency/idempotency-records.ts'
import type { ChangePorts, RootPort } from '../ports.ts'
import { limitReached, notFound } from '../resource-faults.ts'
import type { LiveConfiguration } from './live-configuration.ts'

export type {
  ConfigurationChange,
  ConfigurationEntry,
  ConfigurationKind,
} from '../../storage/control/configuration.ts'

/**
 * The list of them has no pages (contract/wire.md, Variables and secrets).
 * @limit Configuration: names of variables and secrets together
 */
export const NAMES_MAX = 1_000

export interface Configuration {
  /** 0 before the first change. */
  readonly revision: bigint
  /** Sorted by name. */
  readonly entries: readonly ConfigurationEntry[]
}

export interface DeleteInput {
  readonly operationId: OperationId
  readonly name: string
  readonly expectedRevision: bigint
  readonly changedAtMicros: bigint
  readonly requestId: RequestId
}

export interface SetInput extends DeleteInput {
  readonly kind: ConfigurationKind
  readonly value: string
}

export interface AppliedChange {
  readonly change: ConfigurationChange
  readonly operation: Operation
}

export interface ConfigurationPorts extends ChangePorts {
  readonly configuration: Pick<LiveConfiguration, 'reload'>
}

export function readConfiguration({ root }: RootPort): Configuration {
  return root.control.read((reader) => ({
    revision: getConfigurationRevision(reader),
    entries: listEntries(reader),
  }))
}

/** Returns a page, newest first. `after` is `next` of the last page, null for the first. */
export function readConfigurationHistory(
  { root }: RootPort,
  { after, limit }: { readonly after: bigint | null; readonly limit: number },
): { readonly changes: readonly ConfigurationChange[]; readonly next: bigint | null } {
  const found = root.control.read((reader) =>
    listChanges(reader, { before: after, limit: limit + 1 }),
  )
  const changes = found.slice(0, limit)
  return { changes, next: found.length > limit ? changes.at(-1)!.revision : null }
}

/**
 * Adds a name or replaces the value of an existing one. Throws PRODUCT_INVALID,
 * PRODUCT_CAS_CONFLICT, PRODUCT_OPERATION_REUSED, and PRODUCT_STATE_CONFLICT if the name has the
 * other kind or there are too many.
 */
export function setConfiguration(
  ports: ConfigurationPorts,
  actor: RecordedActor,
  input: SetInput,
): AppliedChange {
  requireValue(input)
  const { name, kind, value } = input
  return change(ports, actor, 'set', input, (tx, revision) => {
    const earlier = findEntry(tx, name)
    // A secret that became a variable by mistake would be shown in every list.
    if (earlier !== null && earlier.content.kind !== kind) {
      throw new Fault('PRODUCT_STATE_CONFLICT', {
        detail: `${name} is a ${earlier.content.kind}`,
        violations: [
          { path: 'kind', rule: 'the kind that the name has; delete it to change that' },
        ],
      })
    }
    if (earlier === null && countEntries(tx) >= NAMES_MAX) {
      throw limitReached('name', NAMES_MAX, 'names')
    }
    insertEntry(tx, {
      name,
      revision,
      createdAtMicros: earlier?.createdAtMicros ?? input.changedAtMicros,
      updatedAtMicros: input.changedAtMicros,
      content: kind === 'variable' ? { kind, value } : sealedContent(ports, input, revision),
    })
    return kind
  })
}

/** Throws PRODUCT_INVALID, PRODUCT_CAS_CONFLICT, PRODUCT_OPERATION_REUSED, PRODUCT_NOT_FOUND. */
export function deleteConfiguration(
  ports: ConfigurationPorts,
  actor: RecordedActor,
  input: DeleteInput,
): AppliedChange {
  return change(ports, actor, 'delete', input, (tx) => {
    const earlier = findEntry(tx, input.name)
    if (earlier === null) {
      throw notFound({ path: 'name', rule: 'a name that is set', detail: input.name })
    }
    deleteEntry(tx, input.name)
    return earlier.content.kind
  })
}

/** Commits a change once; `apply` writes it at its revision and returns the kind of the name. */
function change(
  ports: ConfigurationPorts,
  actor: RecordedActor,
  action: ConfigurationChange['action'],
  { operationId, requestId, changedAtMicros, ...fields }: DeleteInput | SetInput,
  apply: (tx: ControlTx, revision: bigint) => ConfigurationKind,
): AppliedChange {
  const { name, expectedRevision } = fields
  if (!isConfigurationName(name)) throw invalid('name', 'a name such as API_KEY')
  const intent = {
    operationId,
    kind: `configuration.${action}`,
    request: { ...fields, expectedRevision: String(expectedRevision) },
    changedAtMicros,
    subject: name,
    requestId,
  } as const
  const { result, operation } = applyOnce(ports, actor, intent, (tx) => {
    const current = getConfigurationRevision(tx)
    if (current !== expectedRevision) {
      throw new Fault('PRODUCT_CAS_CONFLICT', { detail: `revision ${current}` })
    }
    const revision = current + 1n
    const kind = apply(tx, revision)
    const { operatorId } = actor
    insertChange(tx, { revision, name, kind, action, operatorId, changedAtMicros })
    return { result: { kind }, revision }
  })
  if (!operation.replayed) ports.configuration.reload()
  const { operatorId } = actor
  const { revision } = operation
  return {
    change: { revision, name, kind: result.kind, action, operatorId, changedAtMicros },
    operation,
  }
}

function sealedContent(
  { root, system }: ConfigurationPorts,
  { name, value }: SetInput,
  revision: bigint,
) {
  const subject = { environmentId: root.descriptor.environmentId, name, revision }
  const sealed = seal(root.keyring, system, subject, new Secret(value))
  return { kind: 'secret', sealed } as const
}

function requireValue({ kind, value }: SetInput): void {
  if (!value.isWellFormed() || Buffer.byteLength(value) > CONFIGURATION_VALUE_BYTES_MAX) {
    throw invalid('value', `at most ${CONFIGURATION_VALUE_BYTES_MAX} bytes of UTF-8`)
  }
  // An empty secret comes from a pipe or an environment variable that had no value.
  if (kind === 'secret' && value === '') throw invalid('value', 'not empty')
}

function invalid(path: string, rule: string): Fault {
  return new Fault('PRODUCT_INVALID', { violations: [{ path, rule }] })
}
