/** The model: the state of each resource after a change, and the changes that it rejects. */
import type { Json } from '../application.ts'
import type {
  Change,
  ChannelChange,
  ConfigurationChange,
  EnvironmentChange,
  PolicyChange,
} from './changes.ts'

/** An immutable state at one revision. */
export interface State {
  /** The value that a change must expect in order to be applied. */
  readonly stamp: string
  /** The state as reads return it. */
  readonly view: Json
  /** The result of the change that led to this state; null for the initial state. */
  readonly result: Json
  /** The audit record of that change; null for the initial state. */
  readonly audit: { readonly operation: string; readonly subject: string } | null
  /** Returns the code that the change is rejected with; null if it can be applied. */
  rejection(change: Change): string | null
  after(change: Change): State
}

const CONFLICT = 'PRODUCT_CAS_CONFLICT'
const STATE_CONFLICT = 'PRODUCT_STATE_CONFLICT'
const INCOMPATIBLE = 'PRODUCT_INCOMPATIBLE'
/** Number of earlier bindings that the status contains. */
const HISTORY_MAX = 100

/** The compatibility of the Releases of a run with stored documents and with each other. */
export interface Compatibility {
  /** Returns whether the Release is compatible with the stored documents, which never change. */
  fits(release: string): boolean
  /** Returns whether each Release accepts the documents that the others write. */
  coexist(releases: readonly string[]): boolean
}

export class ChannelState implements State {
  readonly #name: string
  readonly #compatibility: Compatibility
  readonly #releases: readonly string[]
  readonly #had: ReadonlySet<string>
  readonly audit: State['audit']

  /** `releases` are the latest bindings, newest first. */
  constructor(
    name: string,
    compatibility: Compatibility,
    releases: readonly string[],
    had: ReadonlySet<string> = new Set(releases),
    verb: string | null = null,
  ) {
    this.#name = name
    this.#compatibility = compatibility
    this.#releases = releases
    this.#had = had
    const operation = `product.channel.${verb}`
    this.audit = verb === null ? null : { operation, subject: `${name}:${releases[0]}` }
  }

  get stamp(): string {
    return this.#releases[0] ?? 'empty'
  }

  get view(): Json {
    return { releaseId: this.stamp, history: this.#releases.slice(1) }
  }

  get result(): Json {
    return { releaseId: this.stamp, previousReleaseId: this.#releases[1] ?? null }
  }

  rejection(change: ChannelChange): string | null {
    const { expected, verb, releaseId } = change
    if (verb === 'rollback' && this.stamp === 'empty') return 'PRODUCT_NOT_FOUND'
    if (expected !== this.stamp) return CONFLICT
    const isEarlier = releaseId !== this.stamp && this.#had.has(releaseId)
    if (verb === 'rollback' && !isEarlier) return STATE_CONFLICT
    return this.#compatibility.fits(releaseId) ? null : INCOMPATIBLE
  }

  after(change: ChannelChange): ChannelState {
    const { verb, releaseId } = change
    const releases = [releaseId, ...this.#releases].slice(0, HISTORY_MAX + 1)
    const had = this.#had.has(releaseId) ? this.#had : new Set([...this.#had, releaseId])
    return new ChannelState(this.#name, this.#compatibility, releases, had, verb)
  }
}

export class PolicyState implements State {
  readonly #environmentId: string
  readonly #compatibility: Compatibility
  readonly #revision: number
  readonly view: Json

  constructor(
    environmentId: string,
    compatibility: Compatibility,
    revision = 0,
    view: Json = { mode: 'atomic', releases: [] },
  ) {
    this.#environmentId = environmentId
    this.#compatibility = compatibility
    this.#revision = revision
    this.view = view
  }

  get stamp(): string {
    return String(this.#revision)
  }

  get result(): Json {
    return this.view
  }

  get audit(): State['audit'] {
    const subject = `${this.#environmentId}:${this.#revision}`
    return { operation: 'product.serving_policy.set', subject }
  }

  /** Rejects incompatible Releases before it compares the expected revision. */
  rejection(change: PolicyChange): string | null {
    const releases = change.releases.map(({ releaseId }) => releaseId)
    const { coexist, fits } = this.#compatibility
    if (!coexist(releases) || !releases.every(fits)) return INCOMPATIBLE
    return change.expected === this.stamp ? null : CONFLICT
  }

  after(change: PolicyChange): PolicyState {
    const { mode, releases } = change
    const next = { mode, releases }
    return new PolicyState(this.#environmentId, this.#compatibility, this.#revision + 1, next)
  }
}

export class ConfigurationState implements State {
  readonly #revision: number
  /** Entries by name. */
  readonly #entries: ReadonlyMap<string, Json>
  /** The change that led to this state, as the history contains it. */
  readonly result: Json

  constructor(revision = 0, entries: ReadonlyMap<string, Json> = new Map(), result: Json = null) {
    this.#revision = revision
    this.#entries = entries
    this.result = result
  }

  get stamp(): string {
    return String(this.#revision)
  }

  get view(): Json {
    return [...this.#entries.keys()].sort().map((name) => this.#entries.get(name))
  }

  get audit(): State['audit'] {
    if (this.result === null) return null
    const { action, name } = this.result
    return { operation: `product.configuration.${action}`, subject: name }
  }

  rejection(change: ConfigurationChange): string | null {
    if (change.expected !== this.stamp) return CONFLICT
    const known = this.#entries.get(change.name)
    if (change.verb === 'delete') return known === undefined ? 'PRODUCT_NOT_FOUND' : null
    return known === undefined || known.kind === change.kind ? null : STATE_CONFLICT
  }

  after(change: ConfigurationChange): ConfigurationState {
    const { verb: action, name, changedAtMicros } = change
    const revision = String(this.#revision + 1)
    const known = this.#entries.get(name)
    const entries = new Map(this.#entries)
    if (change.verb === 'delete') entries.delete(name)
    else {
      const { kind, value } = change
      const createdAtMicros = known?.createdAtMicros ?? changedAtMicros
      const entry = { name, kind, revision, createdAtMicros, updatedAtMicros: changedAtMicros }
      entries.set(name, kind === 'variable' ? { ...entry, value } : entry)
    }
    const kind = change.verb === 'delete' ? known?.kind : change.kind
    const result = { revision, name, kind, action, changedAtMicros }
    return new ConfigurationState(this.#revision + 1, entries, result)
  }
}

export class EnvironmentState implements State {
  readonly #environmentId: string
  readonly #revision: number
  readonly #verb: string | null
  /** An object with `lifecycle` and `configuration`. */
  readonly view: Json

  constructor(
    environmentId: string,
    view: Json,
    { revision = 0, verb = null }: { revision?: number; verb?: string | null } = {},
  ) {
    this.#environmentId = environmentId
    this.#revision = revision
    this.#verb = verb
    this.view = view
  }

  get stamp(): string {
    return String(this.#revision)
  }

  get result(): Json {
    return this.view
  }

  get audit(): State['audit'] {
    const operation = `product.environment.${this.#verb}`
    return this.#verb === null ? null : { operation, subject: this.#environmentId }
  }

  rejection(change: EnvironmentChange): string | null {
    if (change.verb === 'create') return this.#revision === 0 ? null : STATE_CONFLICT
    if (change.expected !== this.stamp) return CONFLICT
    return change.verb !== 'update' && this.view.lifecycle === LIFECYCLE[change.verb]
      ? STATE_CONFLICT
      : null
  }

  after(change: EnvironmentChange): EnvironmentState {
    const { verb } = change
    const view =
      verb === 'create' || verb === 'update'
        ? { ...this.view, configuration: change.configuration }
        : { ...this.view, lifecycle: LIFECYCLE[verb] }
    return new EnvironmentState(this.#environmentId, view, { revision: this.#revision + 1, verb })
  }
}

const LIFECYCLE = { archive: 'archived', restore: 'active' } as const
