/** A configuration of Functions that a test can change. */
import type {
  ConfigurationSnapshot,
  ConfigurationSource,
} from '../src/engine/calls/function-configuration.ts'
import { Secret } from '../src/value/secret.ts'

type Values = Readonly<Record<string, string>>

export class TestConfiguration implements ConfigurationSource {
  readonly #listeners: (() => void)[] = []
  #current: ConfigurationSnapshot = stateOf({}, {})

  get current(): ConfigurationSnapshot {
    return this.#current
  }

  change({ variables = {}, secrets = {} }: { variables?: Values; secrets?: Values }): void {
    this.#current = stateOf(variables, secrets)
    for (const listener of this.#listeners) listener()
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }
}

function stateOf(variables: Values, secrets: Values): ConfigurationSnapshot {
  return {
    variable: (name) => variables[name] ?? null,
    secret: (name) => (secrets[name] === undefined ? null : new Secret(secrets[name])),
  }
}
