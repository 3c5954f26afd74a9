/**
 * Applies the variables and secrets of a file in a Workspace to its local Environment. A name that
 * an Action declares in `uses.secrets`, or that a hook verifies with, is a secret, every other name
 * a variable.
 */
import { existsSync } from 'node:fs'
import type { DevelopmentEvent } from '../../client/development/events.ts'
import type { Release } from '../../engine/releases/executable-release.ts'
import { isFault } from '../../errors/fault.ts'
import type { RecordedActor } from '../../identity/actor.ts'
import {
  type ConfigurationKind,
  type ConfigurationPorts,
  deleteConfiguration,
  readConfiguration,
  setConfiguration,
} from '../../product/configuration/configuration.ts'
import type { LiveConfiguration } from '../../product/configuration/live-configuration.ts'
import { listNamesSetBy } from '../../storage/control/configuration.ts'
import { secretOf } from '../../value/http/routes.ts'
import { CONFIGURATION_FILE, readConfigurationFile } from './configuration-file.ts'

export interface LocalConfigurationOptions {
  readonly ports: Omit<ConfigurationPorts, 'configuration'> & {
    readonly configuration: Pick<LiveConfiguration, 'reload' | 'current'>
  }
  readonly author: RecordedActor
  /** Absolute path of the Workspace. */
  readonly workspaceDirectory: string
  readonly report: (event: DevelopmentEvent) => void
}

/** The parts of a Release that name the secrets and variables of its Functions. */
export type UsedNames = Pick<Release, 'functions' | 'source' | 'http'>

interface Wanted {
  readonly name: string
  readonly kind: ConfigurationKind
  readonly value: string
}

const FUNCTIONS_SHOWN = 3

export class LocalConfiguration {
  readonly #options: LocalConfigurationOptions
  #lastWarnings: readonly string[] = []

  constructor(options: LocalConfigurationOptions) {
    this.#options = options
  }

  /**
   * Applies the file for the Functions of a Release, and reports the changes. Removes names that
   * the file no longer has, unless another operator has set them. Throws PRODUCT_UNAVAILABLE and
   * other failures that the file does not cause.
   */
  apply(release: UsedNames): void {
    const { workspaceDirectory, report } = this.#options
    // Until the Workspace is back, the last code is served with the last configuration.
    if (!existsSync(workspaceDirectory)) return
    const file = readConfigurationFile(workspaceDirectory)
    const secrets = declaredSecrets(release)
    const warnings = [...file.warnings]
    let changes: Changes = { set: [], removed: [] }
    if (file.values !== null) {
      const wanted = [...file.values].map(([name, value]): Wanted => {
        const kind = secrets.has(name) ? 'secret' : 'variable'
        return { name, kind, value: value.reveal() }
      })
      // An empty secret has no value.
      const given = wanted.filter(({ kind, value }) => kind === 'variable' || value !== '')
      changes = this.#change(given, warnings)
      warnings.push(...unusedNames(given, release))
    }
    warnings.push(...this.#missing(secrets))
    if (changes.set.length + changes.removed.length === 0 && this.#isKnown(warnings)) return
    this.#lastWarnings = warnings
    report({ event: 'configuration', ...changes, warnings })
  }

  #change(wanted: readonly Wanted[], warnings: string[]): Changes {
    const { ports, author } = this.#options
    const names = new Set(wanted.map(({ name }) => name))
    const own = ports.root.control.read((reader) => listNamesSetBy(reader, author.operatorId))
    const removed = own.filter((name) => !names.has(name))
    for (const name of removed) this.#delete(name)
    const set: Changes['set'] = []
    for (const each of wanted) {
      try {
        if (this.#set(each)) set.push({ name: each.name, kind: each.kind })
      } catch (error) {
        if (!isFault(error, 'PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT')) throw error
        const rules = error.violations.map(({ path, rule }) => `its ${path} must be ${rule}`)
        warnings.push(`${each.name} was not set: ${rules.join('; ')}.`)
      }
    }
    return { set, removed }
  }

  /** Returns whether the configuration changed. */
  #set({ name, kind, value }: Wanted): boolean {
    const { ports, author } = this.#options
    const earlier = this.#kindOf(name)
    if (earlier === kind && this.#valueOf(name, kind) === value) return false
    if (earlier !== null && earlier !== kind) this.#delete(name)
    setConfiguration(ports, author, { ...this.#next(name), kind, value })
    return true
  }

  #delete(name: string): void {
    const { ports, author } = this.#options
    deleteConfiguration(ports, author, this.#next(name))
  }

  #next(name: string) {
    const { ports } = this.#options
    const { system } = ports
    return {
      operationId: system.ids.make('opn'),
      requestId: system.ids.make('req'),
      name,
      expectedRevision: readConfiguration(ports).revision,
      changedAtMicros: system.nowMicros(),
    }
  }

  #kindOf(name: string): ConfigurationKind | null {
    const { entries } = readConfiguration(this.#options.ports)
    return entries.find((entry) => entry.name === name)?.content.kind ?? null
  }

  /** Returns the stored value; null for a secret that cannot be unsealed, which is replaced. */
  #valueOf(name: string, kind: ConfigurationKind): string | null {
    const { current } = this.#options.ports.configuration
    if (kind === 'variable') return current.variable(name)
    try {
      return current.secret(name)?.reveal() ?? null
    } catch (error) {
      if (isFault(error, 'INTERNAL')) return null
      throw error
    }
  }

  #missing(secrets: DeclaredSecrets): string[] {
    const { entries } = readConfiguration(this.#options.ports)
    const kinds = new Map(entries.map(({ name, content }) => [name, content.kind]))
    return [...secrets]
      .filter(([name]) => kinds.get(name) !== 'secret')
      .map(([name, { functions, hooks }]) => {
        const declares = functions.length === 1 ? 'declares' : 'declare'
        const uses =
          functions.length === 0 ? [] : [`${listed(functions)} ${declares} it in uses.secrets`]
        const verifies = hooks.length === 1 ? 'verifies' : 'verify'
        if (hooks.length > 0) uses.push(`${listed(hooks)} of http.ts ${verifies} with it`)
        return (
          `The secret ${name} has no value: ${uses.join(', and ')}. ` +
          `Write a line ${name}=value into ${CONFIGURATION_FILE} of the Workspace.`
        )
      })
  }

  #isKnown(warnings: readonly string[]): boolean {
    return warnings.join('\n') === this.#lastWarnings.join('\n')
  }
}

interface Changes {
  readonly set: { readonly name: string; readonly kind: ConfigurationKind }[]
  readonly removed: string[]
}

/** The Functions that declare a secret, and the hooks that verify with it, both sorted. */
interface SecretUses {
  readonly functions: string[]
  readonly hooks: string[]
}

type DeclaredSecrets = ReadonlyMap<string, SecretUses>

/** Returns the uses of each secret, in the order of the names. */
function declaredSecrets({ functions, http = [] }: UsedNames): DeclaredSecrets {
  const found = new Map<string, SecretUses>()
  const usesOf = (secret: string): SecretUses => {
    const uses = found.get(secret) ?? { functions: [], hooks: [] }
    found.set(secret, uses)
    return uses
  }
  for (const { name, uses } of [...functions.values()].sort(byName)) {
    for (const secret of uses?.secrets ?? []) usesOf(secret).functions.push(name)
  }
  for (const route of http) {
    const secret = route.kind === 'hook' ? secretOf(route.verify) : null
    if (secret !== null) usesOf(secret).hooks.push(route.name)
  }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)))
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : 1
}

/** Returns warnings of unused names. Variables are not declared, so the source is searched. */
function unusedNames(wanted: readonly Wanted[], { source }: UsedNames): string[] {
  return wanted
    .filter(({ kind, name }) => kind === 'variable' && !source.includes(name))
    .map(
      ({ name }) =>
        `No Function uses ${name} of ${CONFIGURATION_FILE}: none declares it in uses.secrets, ` +
        'and no source mentions it as a variable. Check its name, or remove its line.',
    )
}

function listed(names: readonly string[]): string {
  const more = names.length - FUNCTIONS_SHOWN
  const shown = names.slice(0, FUNCTIONS_SHOWN).join(', ')
  return more > 0 ? `${shown} and ${more} more` : shown
}
