/**
 * The derived sessions that the page works with: one for each Environment that it shows, and one
 * for the administration of operators. Their tokens stay in the memory of this process.
 */
import { Fault } from '../../errors/fault.ts'
import { type Capability, capabilitiesOfRole, type Role } from '../../value/capabilities.ts'
import type { EnvironmentId, ProjectId } from '../../value/ids.ts'
import { environmentScope, type Scope } from '../../value/scope.ts'
import type { OperatorSession } from '../sessions/sessions.ts'

/** An Environment that the operator may reach. */
export interface ConsoleEnvironment {
  readonly projectId: ProjectId
  readonly environmentId: EnvironmentId
  readonly name: string
  readonly capabilities: readonly Capability[]
}

/** A session with a part of the operator's rights, which `end` revokes. */
export interface ConsoleSession {
  readonly session: Pick<OperatorSession, 'anyCall' | 'anyLines' | 'anyBytes' | 'anyUpload'>
  end(): Promise<void>
}

export type Derive = (capabilities: readonly Capability[], scope: Scope) => Promise<ConsoleSession>

/** Capabilities that the page uses at an Environment, where the operator has them. */
const CAPABILITIES: readonly Capability[] = [
  'backups:manage',
  'channels:promote',
  'configuration:manage',
  'configuration:read',
  'credentials:manage',
  'credentials:read',
  'cron:activate',
  'cron:read',
  'data:read',
  'data:write',
  'environments:manage',
  'environments:read',
  'functions:invoke',
  'logs:follow',
  'logs:read',
  'releases:publish',
  'releases:read',
  'schedules:read',
  'storage:manage',
  'storage:read',
  'usage:read',
]

export class ConsoleSessions {
  readonly #derive: Derive
  readonly #environments: ReadonlyMap<string, ConsoleEnvironment>
  readonly #administration: Scope | null
  /** Sessions by the ID of their Environment; the empty ID is the administration of operators. */
  readonly #sessions = new Map<string, Promise<ConsoleSession>>()

  /** `administration` is the scope at which the operator manages operators; null for none. */
  constructor(
    derive: Derive,
    environments: readonly ConsoleEnvironment[],
    administration: Scope | null,
  ) {
    this.#derive = derive
    this.#environments = new Map(environments.map((each) => [each.environmentId, each]))
    this.#administration = administration
  }

  get administersOperators(): boolean {
    return this.#administration !== null
  }

  environment(environmentId: string): ConsoleEnvironment | null {
    return this.#environments.get(environmentId) ?? null
  }

  /** Returns the session of an Environment. Throws what its derivation throws. */
  async of({ projectId, environmentId, capabilities }: ConsoleEnvironment) {
    const scope = environmentScope(projectId, environmentId)
    const used = CAPABILITIES.filter((each) => capabilities.includes(each))
    return (await this.#opened(environmentId, used, scope)).session
  }

  /** Returns the session that manages operators. Throws PLATFORM_ACCESS_DENIED. */
  async ofAdministration() {
    const scope = this.#administration
    if (scope === null) throw new Fault('PLATFORM_ACCESS_DENIED')
    return (await this.#opened('', ['operators:manage'], scope)).session
  }

  /**
   * Runs `work` with a session that may give a role at a scope, and ends the session. The one that
   * manages operators holds nothing that it could give. Throws PLATFORM_ACCESS_DENIED where the
   * operator lacks what the role gives, and what `work` throws.
   */
  async whileDelegating<T>(
    role: Role,
    scope: Scope,
    work: (session: ConsoleSession['session']) => Promise<T>,
  ): Promise<T> {
    if (this.#administration === null) throw new Fault('PLATFORM_ACCESS_DENIED')
    const given = new Set<Capability>(['operators:manage', ...capabilitiesOfRole(role)])
    const opened = await this.#derive([...given], scope)
    try {
      return await work(opened.session)
    } finally {
      await opened.end()
    }
  }

  #opened(key: string, capabilities: readonly Capability[], scope: Scope) {
    const known = this.#sessions.get(key)
    if (known !== undefined) return known
    const opening = this.#derive(capabilities, scope)
    this.#sessions.set(key, opening)
    // The next request tries again.
    opening.catch(() => this.#sessions.delete(key))
    return opening
  }

  /** Revokes every session; resolves when that was tried. */
  async end(): Promise<void> {
    const opened = await Promise.allSettled(this.#sessions.values())
    this.#sessions.clear()
    await Promise.allSettled(
      opened.map((each) => (each.status === 'fulfilled' ? each.value.end() : undefined)),
    )
  }
}
