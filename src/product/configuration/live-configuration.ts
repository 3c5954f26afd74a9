/** The configuration that running Functions read: loaded on first use, and again after a change. */
import type {
  ConfigurationSnapshot,
  ConfigurationSource,
} from '../../engine/calls/function-configuration.ts'
import { type ConfigurationEntry, listEntries } from '../../storage/control/configuration.ts'
import type { ProductRoot } from '../../storage/root.ts'
import { unseal } from '../../storage/sealing.ts'
import type { Secret } from '../../value/secret.ts'
import { rethrowForApplication } from '../application-faults.ts'

type Root = Pick<ProductRoot, 'control' | 'keyring' | 'descriptor'>

export class LiveConfiguration implements ConfigurationSource {
  readonly #root: Root
  readonly #listeners: (() => void)[] = []
  #current: LoadedConfiguration

  constructor(root: Root) {
    this.#root = root
    this.#current = new LoadedConfiguration(root)
  }

  get current(): ConfigurationSnapshot {
    return this.#current
  }

  /** Replaces the state after a committed change. Calls that start later see it. */
  reload(): void {
    this.#current = new LoadedConfiguration(this.#root)
    for (const listener of this.#listeners) listener()
  }

  /** Unseals every secret of the current configuration. */
  secrets(): Secret[] {
    return this.#current.secrets()
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }
}

class LoadedConfiguration implements ConfigurationSnapshot {
  readonly #root: Root
  #entries: ReadonlyMap<string, ConfigurationEntry> | null = null

  constructor(root: Root) {
    this.#root = root
  }

  variable(name: string): string | null {
    const content = this.#find(name)?.content
    return content?.kind === 'variable' ? content.value : null
  }

  /** Unseals the secret each time, so that its text is in memory only while it is used. */
  secret(name: string): Secret | null {
    const entry = this.#find(name)
    if (entry?.content.kind !== 'secret') return null
    const { sealed } = entry.content
    const { keyring, descriptor } = this.#root
    const { environmentId } = descriptor
    return forFunctions(() =>
      unseal(keyring, { environmentId, name, revision: entry.revision }, sealed),
    )
  }

  secrets(): Secret[] {
    const names = [...this.#load().keys()]
    return names.map((name) => this.secret(name)).filter((secret) => secret !== null)
  }

  #find(name: string): ConfigurationEntry | null {
    return this.#load().get(name) ?? null
  }

  /** Loads all entries at once, so that a call that reads two names sees one state of both. */
  #load(): ReadonlyMap<string, ConfigurationEntry> {
    this.#entries ??= forFunctions(() => {
      const entries = this.#root.control.read(listEntries)
      return new Map(entries.map((entry) => [entry.name, entry]))
    })
    return this.#entries
  }
}

function forFunctions<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    return rethrowForApplication(error)
  }
}
