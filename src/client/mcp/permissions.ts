/**
 * Permissions of agents: capabilities beyond reading, which a person gave for one Environment and a
 * time. They stand beside the credentials of the user, outside of every Workspace, since an agent
 * writes the files of the Workspace that it works in.
 */
import { join } from 'node:path'
import { Fault } from '../../errors/fault.ts'
import {
  ensurePrivateDirectory,
  removeFileDurably,
  restrictToOwner,
  writeFileAtomic,
} from '../../system/files.ts'
import { canonicalJson } from '../../value/canonical-json.ts'
import { CAPABILITIES, type Capability } from '../../value/capabilities.ts'
import type { EnvironmentId } from '../../value/ids.ts'
import { parseStrictJson } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { CapabilityField, idField, Micros } from '../../wire/fields.ts'
import { rule } from '../../wire/rules.ts'
import { schema } from '../../wire/schema.ts'
import type { Context } from '../contexts.ts'
import { explanation } from '../explanations.ts'
import { readIfPresent, sweepTemporaries, withPath } from '../files.ts'
import { canonicalOrigin } from '../origins.ts'
import { withLock } from '../sessions/locks.ts'
import { credentialsDirectory } from '../sessions/profiles.ts'
import { isAllowable } from './capabilities.ts'

export const PERMISSIONS_FILE = 'mcp-permissions-v1.json'
const PERMISSIONS_BYTES_MAX = 256 * 1024
const PERMISSIONS_MAX = 1_000
const PRIVATE_FILE = 0o600

/** Seconds of a permission by default: one working day. */
export const PERMISSION_SECONDS = 8 * 3_600
/**
 * Seconds of a permission of an agent.
 * @limit Identity and keys: permission of an agent
 */
export const PERMISSION_SECONDS_MAX = 30 * 86_400

/** The Environment that a permission is for. */
export interface PermissionTarget {
  /** Null for a `svc dev`, whose address is another one after each start. */
  readonly managementOrigin: string | null
  readonly environmentId: EnvironmentId
}

export interface Permission extends PermissionTarget {
  readonly capability: Capability
  readonly grantedAtMicros: bigint
  readonly endsAtMicros: bigint
}

const PermissionsFile = schema({
  version: '1',
  permissions: [
    [
      {
        managementOrigin: [
          [
            'string',
            ':',
            rule('a canonical origin', (text: string) => canonicalOrigin(text) === text),
          ],
          '|',
          'null',
        ],
        environmentId: idField('env'),
        capability: CapabilityField,
        grantedAtMicros: Micros,
        endsAtMicros: Micros,
      },
      '[]',
    ],
    '&',
    `unknown[] <= ${PERMISSIONS_MAX}`,
  ],
})

export class PermissionStore {
  readonly path: string
  readonly #directory: string
  readonly #context: Pick<Context, 'environment' | 'output'>

  /** Throws CLIENT_USAGE if no directory for the file is known. */
  constructor(context: Pick<Context, 'environment' | 'output'>) {
    this.#directory = credentialsDirectory(context.environment)
    this.path = join(this.#directory, PERMISSIONS_FILE)
    this.#context = context
  }

  /**
   * Returns the permissions that have not ended, sorted. Throws CLIENT_FILE_FAILED, also for a file
   * that this client did not write.
   */
  async list(): Promise<readonly Permission[]> {
    const bytes = readIfPresent(this.path, PERMISSIONS_BYTES_MAX)
    if (bytes === null || this.#isForged()) return []
    const { parse } = await import('../../wire/reading/read.ts')
    try {
      const { permissions } = parse(PermissionsFile, parseStrictJson(bytes))
      const all = permissions.map((each) => ({
        ...each,
        grantedAtMicros: BigInt(each.grantedAtMicros),
        endsAtMicros: BigInt(each.endsAtMicros),
      }))
      return all.filter((each) => this.#isInForce(each)).toSorted(byTarget)
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error
      throw new Fault('CLIENT_FILE_FAILED', {
        detail: `${this.path} is damaged: ${error.message}.`,
        cause: explanation({ next: 'Remove the file, then give the permissions again.' }),
      })
    }
  }

  /** Returns the permissions for an Environment, by their capabilities. */
  async of(target: PermissionTarget): Promise<ReadonlyMap<Capability, Permission>> {
    const all = await this.list()
    const own = all.filter((each) => isOf(each, target))
    return new Map(own.map((each) => [each.capability, each]))
  }

  /** Adds permissions in place of those with equal capabilities. */
  async allow(
    target: PermissionTarget,
    capabilities: readonly Capability[],
    seconds: number,
  ): Promise<readonly Permission[]> {
    const grantedAtMicros = this.#context.environment.system.nowMicros()
    const endsAtMicros = grantedAtMicros + BigInt(seconds) * 1_000_000n
    const { managementOrigin, environmentId } = target
    const added = capabilities.map((capability) => {
      return { managementOrigin, environmentId, capability, grantedAtMicros, endsAtMicros }
    })
    await this.#change((kept) => [...without(kept, target, capabilities), ...added])
    return added
  }

  /** Removes permissions; null for all of the Environment. Returns those that were removed. */
  async deny(
    target: PermissionTarget,
    capabilities: readonly Capability[] | null,
  ): Promise<readonly Permission[]> {
    let removed: readonly Permission[] = []
    await this.#change((kept) => {
      const left = without(kept, target, capabilities ?? CAPABILITIES)
      removed = kept.filter((each) => !left.includes(each))
      return left
    })
    return removed
  }

  /** Reads and replaces the file while no other process changes it. */
  async #change(change: (kept: readonly Permission[]) => readonly Permission[]): Promise<void> {
    const { system } = this.#context.environment
    withPath(this.#directory, () => ensurePrivateDirectory(this.#directory))
    const lock = join(this.#directory, 'mcp-permissions-v1.lock')
    await withLock(lock, system, new AbortController().signal, async () => {
      sweepTemporaries(this.path)
      const changed = change(await this.list())
      if (changed.length > PERMISSIONS_MAX) {
        const detail = `${this.path} has ${PERMISSIONS_MAX} permissions.`
        throw new Fault('CLIENT_FILE_FAILED', {
          detail,
          cause: explanation({ next: 'Remove some with `svc mcp deny`.' }),
        })
      }
      const text = formatPermissions(changed)
      withPath(this.path, () => writeFileAtomic(this.path, text, { mode: PRIVATE_FILE }))
    })
  }

  /** Tells whether others could have written the file, which is then removed. */
  #isForged(): boolean {
    const mode = withPath(this.path, () => restrictToOwner(this.path))
    if (mode === null) return false
    withPath(this.path, () => removeFileDurably(this.path))
    void this.#context.output.warn(
      `warning: ${this.path} was open to other users (mode 0${mode.before.toString(8)}), so svc ` +
        'removed it: no permission of an agent is left. Give them again with `svc mcp allow`.',
    )
    return true
  }

  #isInForce({ capability, grantedAtMicros, endsAtMicros }: Permission): boolean {
    const now = this.#context.environment.system.nowMicros()
    const isBounded = endsAtMicros - grantedAtMicros <= BigInt(PERMISSION_SECONDS_MAX) * 1_000_000n
    return isAllowable(capability) && isBounded && now < endsAtMicros
  }
}

function isOf(permission: PermissionTarget, target: PermissionTarget): boolean {
  return (
    permission.managementOrigin === target.managementOrigin &&
    permission.environmentId === target.environmentId
  )
}

function without(
  permissions: readonly Permission[],
  target: PermissionTarget,
  capabilities: readonly Capability[],
): readonly Permission[] {
  return permissions.filter(
    (each) => !isOf(each, target) || !capabilities.includes(each.capability),
  )
}

function byTarget(a: Permission, b: Permission): number {
  const key = (each: Permission) =>
    `${each.managementOrigin ?? ''} ${each.environmentId} ${each.capability}`
  return key(a) < key(b) ? -1 : 1
}

function formatPermissions(permissions: readonly Permission[]): string {
  const rows = permissions.map(({ grantedAtMicros, endsAtMicros, ...rest }) => ({
    ...rest,
    grantedAtMicros: String(grantedAtMicros),
    endsAtMicros: String(endsAtMicros),
  }))
  return `${canonicalJson({ version: 1, permissions: rows })}\n`
}
