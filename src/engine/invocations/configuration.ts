/** What Functions see of the Environment's configuration. */
import type { Secret } from '../../value/secret.ts'

/** One state of it, which never changes: a call sees the one that it began with. */
export interface ConfigurationState {
  /** null where the name is no variable. Throws UNAVAILABLE or INTERNAL. */
  variable(name: string): string | null
  /** null where the name is no secret. Throws UNAVAILABLE or INTERNAL. */
  secret(name: string): Secret | null
}

export interface ConfigurationSource {
  /** Another object after every change. */
  readonly current: ConfigurationState
}
