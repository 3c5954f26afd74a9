/** The Environment's configuration as Functions read it through `ctx.config`. */
import type { Secret } from '../../value/secret.ts'

/** An immutable state of the configuration. A call reads the one that it started with. */
export interface ConfigurationSnapshot {
  /** Returns null if no variable has the name. Throws UNAVAILABLE or INTERNAL. */
  variable(name: string): string | null
  /** Returns null if no secret has the name. Throws UNAVAILABLE or INTERNAL. */
  secret(name: string): Secret | null
}

export interface ConfigurationSource {
  /** The current state, which is another object after every change. */
  readonly current: ConfigurationSnapshot
  /** Calls `listener` after every change, as long as the source exists. */
  onChange(listener: () => void): void
}
