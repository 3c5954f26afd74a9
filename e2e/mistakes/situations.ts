/** The form of a situation: what a person runs by mistake, and exactly what the program prints. */
import type { Environment } from '../harness.ts'

/** The user of the session: `nobody` never logged in, `stranger` has grants elsewhere. */
export type Person = 'owner' | 'observer' | 'stranger' | 'nobody' | 'damaged'

export interface Situation {
  readonly situation: string
  /** `svc` or `svc-server` and its arguments. Texts such as `{root}` are values of the server. */
  readonly run: readonly string[]
  /** The owner unless one is named. */
  readonly as?: Person
  /** Variables, of the client or in place of those of the server. An empty one is left out. */
  readonly environment?: Environment
  readonly input?: string
  readonly exit: number
  /** Lines of standard error. */
  readonly message: readonly string[]
  /** A line of standard output. */
  readonly result?: string
}
