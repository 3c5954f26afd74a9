/** Mounts as operators make, change and remove them. */
import { Fault } from '../../errors/fault.ts'
import type { RecordedActor } from '../../identity/actor.ts'
import type { ControlReader, ControlTx } from '../../storage/control/database.ts'
import {
  deleteMount,
  findMount,
  listMounts,
  type MountToken,
  putMount,
  type StoredMount,
} from '../../storage/control/http-mounts.ts'
import { randomSecret } from '../../system/digests.ts'
import { MOUNT_TOKEN_PREFIX, MOUNTS_MAX, mountPath } from '../../value/http/mounts.ts'
import type { OperationId, RequestId } from '../../value/ids.ts'
import { Secret } from '../../value/secret.ts'
import type { ListedMount, MountRead } from '../../wire/http/mounts.ts'
import { type Applied, applyOnce } from '../idempotency/idempotency-records.ts'
import type { ChangePorts, RootPort } from '../ports.ts'
import { limitReached, notFound } from '../resource-faults.ts'
import { findTarget, parseTarget } from '../targets.ts'
import { type MountDirectory, tokenDigest } from './mount-directory.ts'

/** Stored as JSON with its idempotency record, so numbers and times are decimal text. */
export type MountState = MountRead

export interface MountPorts extends ChangePorts {
  readonly httpMounts: Pick<MountDirectory, 'forget'>
}

/** A part that is absent stays as it is; a new mount gets its default. */
export interface MountConfiguration {
  readonly target: string
  /** Null for the default. */
  readonly rateLimit?: number | null | undefined
  readonly pathToken?: boolean | undefined
  readonly publicUrl?: string | null | undefined
}

interface ChangeInput {
  readonly operationId: OperationId
  readonly name: string
  /** Null for any revision, and 0 for a mount that does not exist. */
  readonly expectedRevision: bigint | null
  readonly changedAtMicros: bigint
  readonly requestId: RequestId
}

export interface PutMountInput extends ChangeInput {
  readonly configuration: MountConfiguration
}

export interface PutMount extends Applied<MountState> {
  /** The new secret part of the path; null for a repeat, and where none was made. */
  readonly token: Secret | null
}

/** Returns all mounts in the order of their names, each with what its target serves. */
export function readMounts(ports: RootPort): readonly ListedMount[] {
  const mounts = ports.root.control.read((reader) => listMounts(reader).map(stateOf))
  return mounts.map((mount) => {
    return { ...mount, releaseId: findTarget(ports, mount.configuration.target) }
  })
}

/**
 * Makes or changes a mount, for requests from then on. Throws PRODUCT_INVALID for a target that is
 * none, PRODUCT_CAS_CONFLICT for another revision than the expected one, PRODUCT_OPERATION_REUSED,
 * and PRODUCT_STATE_CONFLICT for one mount too many. The target need not be served yet.
 */
export function changeMount(
  ports: MountPorts,
  actor: RecordedActor,
  { configuration, ...input }: PutMountInput,
): PutMount {
  const { name, expectedRevision } = input
  if (parseTarget(configuration.target) === null) {
    const violations = [{ path: 'configuration.target', rule: 'a target' }]
    throw new Fault('PRODUCT_INVALID', { violations })
  }
  const { system, root } = ports
  let issued: Secret | null = null
  const intent = intentOf('put', input, { configuration: { ...configuration } })
  const applied = applyOnce(ports, actor, intent, (tx) => {
    const current = checkRevision(tx, name, expectedRevision)
    if (current === null && listMounts(tx).length >= MOUNTS_MAX) {
      throw limitReached('name', MOUNTS_MAX, 'mounts')
    }
    const { target, rateLimit, publicUrl } = configuration
    const hasToken = configuration.pathToken ?? current?.token != null
    let token: MountToken | null = hasToken ? (current?.token ?? null) : null
    if (hasToken && token === null) {
      issued = new Secret(randomSecret(system, MOUNT_TOKEN_PREFIX))
      const keyId = root.keyring.activeId
      token = { digest: tokenDigest(root.keyring, keyId, issued), keyId }
    }
    const nowMicros = system.nowMicros()
    const next: StoredMount = {
      name,
      target,
      rateLimit: rateLimit === undefined ? (current?.rateLimit ?? null) : rateLimit,
      publicUrl: publicUrl === undefined ? (current?.publicUrl ?? null) : publicUrl,
      token,
      revision: (current?.revision ?? 0n) + 1n,
      createdAtMicros: current?.createdAtMicros ?? nowMicros,
      updatedAtMicros: nowMicros,
    }
    putMount(tx, next)
    return { result: stateOf(next), revision: next.revision }
  })
  ports.httpMounts.forget()
  return { ...applied, token: issued }
}

/**
 * Removes a mount: its paths are unknown from then on. Deliveries that were accepted still run.
 * Throws PRODUCT_NOT_FOUND, PRODUCT_CAS_CONFLICT and PRODUCT_OPERATION_REUSED.
 */
export function removeMount(
  ports: MountPorts,
  actor: RecordedActor,
  input: ChangeInput,
): Applied<MountState> {
  const { name, expectedRevision } = input
  const applied = applyOnce(ports, actor, intentOf('delete', input, {}), (tx) => {
    const current = checkRevision(tx, name, expectedRevision)
    if (current === null) throw unknownMount(name)
    deleteMount(tx, name)
    return { result: stateOf(current), revision: current.revision }
  })
  ports.httpMounts.forget()
  return applied
}

/** Throws PRODUCT_NOT_FOUND. */
export function requireMount(reader: ControlReader, name: string): StoredMount {
  const found = findMount(reader, name)
  if (found === null) throw unknownMount(name)
  return found
}

function unknownMount(name: string): Fault {
  return notFound({ path: 'mount', rule: 'a mount of this Environment', detail: name })
}

/** Returns the mount, null for none. Throws PRODUCT_CAS_CONFLICT for another revision. */
function checkRevision(
  tx: ControlTx,
  name: string,
  expectedRevision: bigint | null,
): StoredMount | null {
  const current = findMount(tx, name)
  const revision = current?.revision ?? 0n
  if (expectedRevision === null || expectedRevision === revision) return current
  throw new Fault('PRODUCT_CAS_CONFLICT', { detail: `revision ${revision}` })
}

function intentOf(verb: 'put' | 'delete', input: ChangeInput, request: object) {
  const { operationId, name, expectedRevision, changedAtMicros, requestId } = input
  const expected = expectedRevision === null ? {} : { expectedRevision: String(expectedRevision) }
  // Without members that are undefined, which JSON does not have.
  const whole = JSON.parse(JSON.stringify({ name, ...expected, ...request })) as object
  return {
    operationId,
    kind: `http_mount.${verb}`,
    request: whole as { readonly [key: string]: string },
    changedAtMicros,
    subject: name,
    requestId,
  } as const
}

function stateOf(mount: StoredMount): MountState {
  const { name, target, rateLimit, publicUrl, token } = mount
  return {
    name,
    path: mountPath(name),
    revision: String(mount.revision),
    configuration: { target, rateLimit, pathToken: token !== null, publicUrl },
    createdAtMicros: String(mount.createdAtMicros),
    updatedAtMicros: String(mount.updatedAtMicros),
  }
}
