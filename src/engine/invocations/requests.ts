/** Calls of Functions as the engine receives them, before their arguments are checked. */
import type { Span } from '../../telemetry/traces/spans.ts'
import type { Principal } from '../../value/identities.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import type { ValueObject } from '../../value/values.ts'
import type { CancellationToken } from '../calls/outcomes.ts'
import type { Release } from '../releases/executable-release.ts'
import type { InvocationContext } from './invocation.ts'

/** A call of a Query or an Action. */
export interface QueryRequest {
  readonly release: Release
  readonly definition: FunctionManifest
  readonly arguments: ValueObject
  /** The principal that the Function sees; null for an anonymous caller. */
  readonly principal: Principal | null
  readonly context: InvocationContext
  /** The span that causes the call; absent where nothing is traced. */
  readonly trace?: Span | null | undefined
  /** Cancels a Query or an Action when its caller disconnects. A Mutation ignores it. */
  readonly signal?: CancellationToken | undefined
}

/** A call of a Mutation. */
export interface MutationRequest extends QueryRequest {
  readonly operationId: string
  readonly target: string
  readonly caller: string
  /** The piece of scheduled work that the Mutation is; absent for a call. */
  readonly scheduledId?: string
}
