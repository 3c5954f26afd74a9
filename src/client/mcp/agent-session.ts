/**
 * The session of an agent: derived from the one of the operator, with a part of its rights, so that
 * the server limits what the agent does. It is opened when it is first needed, since editors start
 * `svc mcp` before a server runs, and replaced where permissions or rights have changed.
 */
import { type Fault, isFault } from '../../errors/fault.ts'
import { CAPABILITIES, type Capability } from '../../value/capabilities.ts'
import { environmentScope, type Scope, scopeContains } from '../../value/scope.ts'
import type { LocalServer } from '../../wire/files/local-server.ts'
import { readSelf } from '../../wire/operations/identity/auth.ts'
import type { ManagementOperation } from '../../wire/operations/operation.ts'
import type { Context } from '../contexts.ts'
import type { AnyInput } from '../requests/operation-requests.ts'
import { openRemote, type Remote, type RemoteOptions } from '../roots/remotes.ts'
import { type DerivedSession, deriveSession } from '../sessions/derived-session.ts'
import { AGENT_CAPABILITIES } from './capabilities.ts'
import { type Permission, PermissionStore, type PermissionTarget } from './permissions.ts'
import type { CallSubject } from './rejected-calls.ts'

/** Seconds of one derived session, which is replaced while it is used. */
const LIFETIME_SECONDS = 600

export interface AgentSessionOptions {
  readonly at: RemoteOptions
  /** Capabilities that the command line asks for. */
  readonly asked: readonly Capability[]
}

interface Opened {
  readonly derived: DerivedSession
  readonly remote: Remote
  readonly capabilities: ReadonlySet<Capability>
  /** The permissions that it was derived with. */
  readonly allowed: string
}

export class AgentSession {
  readonly #context: Context
  readonly #options: AgentSessionOptions
  readonly #permissions: PermissionStore
  #opened: Opened | null = null
  #opening: Promise<Opened> | null = null
  #known: ReadonlySet<Capability> = new Set(AGENT_CAPABILITIES)
  #ended = false
  /** Called where the capabilities of the session are others than before. */
  onChange: () => void = () => {}

  /** Throws CLIENT_USAGE if no directory for permissions is known. */
  constructor(context: Context, options: AgentSessionOptions) {
    this.#context = context
    this.#options = options
    this.#permissions = new PermissionStore(context)
  }

  /** The capabilities when they were last known; at first those without a permission. */
  get capabilities(): ReadonlySet<Capability> {
    return this.#known
  }

  /** The server and the session as they are known, for a record. */
  get subject(): CallSubject {
    if (this.#opened === null) {
      return { managementOrigin: null, environmentId: null, sessionId: null }
    }
    const { remote, derived } = this.#opened
    return { ...permissionTarget(remote), sessionId: derived.session.profile.sessionId }
  }

  /** Opens the session, or replaces it. Throws as `openRemote` and the derivation do. */
  async open(): Promise<Opened> {
    this.#opening ??= this.#newest().finally(() => {
      this.#opening = null
    })
    return this.#opening
  }

  /**
   * Sends the request of an operation. A session whose server has gone or that has lost a right is
   * opened anew: at once for a request that may be repeated, otherwise by the next one.
   */
  async call(operation: ManagementOperation, input: AnyInput): Promise<unknown> {
    const opened = await this.open()
    try {
      return await send(opened, operation, input)
    } catch (error) {
      if (!isFault(error) || !isOutdated(error)) throw error
      await this.#close(opened)
      if (operation.replay !== 'safe') throw error
      return send(await this.open(), operation, input)
    }
  }

  /** Returns the `svc dev` that is the server; null for another server. */
  async local(): Promise<LocalServer | null> {
    return (await this.open()).remote.local
  }

  /** Ends the session on the server. */
  async end(): Promise<void> {
    this.#ended = true
    const opened = await (this.#opening ?? Promise.resolve(this.#opened)).catch(() => null)
    if (opened !== null) await this.#close(opened)
  }

  async #newest(): Promise<Opened> {
    const opened = this.#opened
    const remote = opened?.remote ?? (await openRemote(this.#context, this.#options.at))
    const permissions = await this.#inForce(remote)
    const allowed = permissions.map(({ capability, endsAtMicros }) => [capability, endsAtMicros])
    const key = allowed.join()
    if (opened !== null && opened.allowed === key) return opened
    if (opened !== null) await this.#close(opened)
    const wanted = [...AGENT_CAPABILITIES, ...permissions.map(({ capability }) => capability)]
    const capabilities = await heldOf(remote, wanted)
    const derived = await this.#derive(remote, capabilities, permissions)
    const next = { derived, remote, capabilities, allowed: key }
    if (this.#ended) await derived.end()
    else this.#opened = next
    this.#know(capabilities)
    return next
  }

  #derive(
    remote: Remote,
    capabilities: ReadonlySet<Capability>,
    permissions: readonly Permission[],
  ): Promise<DerivedSession> {
    return deriveSession(this.#context, remote.session, {
      capabilities: [...capabilities],
      scope: scopeOf(remote),
      purpose: 'mcp',
      lifetimeSeconds: this.#secondsUntil(permissions),
    })
  }

  /** Returns the permissions of the capabilities that the command line asks for. */
  async #inForce(remote: Remote): Promise<readonly Permission[]> {
    const { asked } = this.#options
    if (asked.length === 0) return []
    const permissions = await this.#permissions.of(permissionTarget(remote))
    return [...permissions.values()].filter(({ capability }) => asked.includes(capability))
  }

  /** No session lasts longer than a permission that it has. */
  #secondsUntil(permissions: readonly Permission[]): number {
    const now = this.#context.environment.system.nowMicros()
    const left = permissions.map(({ endsAtMicros }) => Number((endsAtMicros - now) / 1_000_000n))
    return Math.max(1, Math.min(LIFETIME_SECONDS, ...left))
  }

  #know(capabilities: ReadonlySet<Capability>): void {
    const key = (set: ReadonlySet<Capability>): string => [...set].toSorted().join()
    const isEqual = key(this.#known) === key(capabilities)
    this.#known = capabilities
    if (!isEqual) this.onChange()
  }

  async #close(opened: Opened): Promise<void> {
    if (this.#opened === opened) this.#opened = null
    await opened.derived.end()
  }
}

/** Failures after which the session is opened anew. */
function isOutdated({ code }: Fault): boolean {
  return (
    code === 'PLATFORM_ACCESS_DENIED' ||
    code === 'PLATFORM_AUTHENTICATION_FAILED' ||
    code === 'CLIENT_NOT_LOGGED_IN' ||
    code === 'CLIENT_SERVER_UNREACHABLE'
  )
}

function send({ derived, remote }: Opened, operation: ManagementOperation, input: AnyInput) {
  const { projectId, environmentId } = remote.descriptor
  const params = { ...input.params, projectId, environmentId }
  return derived.session.anyCall(operation, { ...input, params })
}

export function permissionTarget({ local, session, descriptor }: Remote): PermissionTarget {
  const managementOrigin = local === null ? session.profile.managementOrigin : null
  return { managementOrigin, environmentId: descriptor.environmentId }
}

function scopeOf({ descriptor }: Remote): Scope {
  return environmentScope(descriptor.projectId, descriptor.environmentId)
}

/** Returns those of the capabilities that the operator holds at the Environment. */
async function heldOf(
  remote: Remote,
  wanted: readonly Capability[],
): Promise<ReadonlySet<Capability>> {
  const { grants } = await remote.session.call(readSelf)
  const scope = scopeOf(remote)
  const held = grants
    .filter((grant) => scopeContains(grant.scope, scope))
    .flatMap(({ capabilities }) => capabilities)
  return new Set(CAPABILITIES.filter((each) => wanted.includes(each) && held.includes(each)))
}
