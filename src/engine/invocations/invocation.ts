/** The state that all attempts of one invocation share. */
import type { StoredDocument } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import type { PrefetchedPage } from '../../runner/protocol/messages.ts'
import type { System } from '../../system/system.ts'
import type { Span } from '../../telemetry/traces/spans.ts'
import type { Principal } from '../../value/identities.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import type { ConfigurationSnapshot, ConfigurationSource } from '../calls/function-configuration.ts'
import type { CancellationToken, RunnerCall } from '../calls/outcomes.ts'
import { INVOCATION_MILLIS_MAX, LOST_RUNS_MAX } from '../limits.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import type { Placeholders } from '../speculation/placeholder-policy.ts'

/** Identifies a call in the log. */
export interface InvocationContext {
  readonly requestId: string
  readonly invocationId: string
  /** The Application Client whose key the request carried. */
  readonly clientId?: string
  readonly credentialId?: string
  /** The scheduled work that the invocation is a run of. */
  readonly scheduledId?: string
}

export interface Invocation {
  readonly prepared: PreparedRelease
  readonly definition: FunctionManifest
  /** Stored JSON of the checked arguments. */
  readonly argumentsText: string
  /** The principal that the Function sees; null for an anonymous caller. */
  readonly principal: Principal | null
  readonly nowMicros: bigint
  /** 32 bytes, hexadecimal; equal for every attempt of one invocation. */
  readonly seed: string
  /** Monotonic milliseconds; absent where the invocation starts on arrival. */
  readonly arrivedMillis?: number | undefined
  /**
   * Monotonic milliseconds until which the first attempt may wait for a runner; undefined for as
   * long as the deadline allows, as do all further attempts.
   */
  startByMillis?: number | undefined
  /** Monotonic milliseconds. */
  readonly deadline: number
  /** The configuration at the start of the invocation. */
  readonly configuration: ConfigurationSnapshot
  readonly context: InvocationContext
  /** The span of the invocation; absent where nothing is traced. */
  readonly trace?: Span | null | undefined
  readonly signal?: CancellationToken | undefined
  /** True if the next attempt is speculative (speculation/speculation-policy.ts). */
  isSpeculative: boolean
  /** Placeholders of the next attempt (speculation/placeholder-policy.ts); null for documents. */
  placeholders: Placeholders | null
}

export type InvocationInput = Omit<
  Invocation,
  'nowMicros' | 'seed' | 'deadline' | 'configuration' | 'isSpeculative' | 'placeholders'
>

/**
 * Starts an invocation: its time, seed, deadline and configuration are fixed for all its attempts.
 * A runner stops its call once `signal` is aborted.
 */
export function beginInvocation(
  {
    system,
    configuration,
  }: { readonly system: System; readonly configuration: ConfigurationSource },
  input: Omit<InvocationInput, 'signal'>,
  signal: CancellationToken | undefined,
  millisMax = INVOCATION_MILLIS_MAX,
): Invocation {
  // What the server performs itself has no Function.
  const prepared = input.prepared.functions.get(input.definition.name)
  const isSpeculative = prepared?.speculation.decide() ?? false
  return {
    ...input,
    signal,
    nowMicros: system.nowMicros(),
    seed: system.randomBytes(32).toHex(),
    deadline: (input.arrivedMillis ?? system.monotonicMillis()) + millisMax,
    configuration: configuration.current,
    isSpeculative,
    placeholders: isSpeculative ? decidePlaceholders(input) : null,
  }
}

/** A Mutation mostly looks into what it reads. */
function decidePlaceholders({
  prepared,
  definition,
}: Pick<Invocation, 'prepared' | 'definition'>): Placeholders | null {
  if (definition.kind !== 'query' || !prepared.placeholders.areUsed) return null
  return prepared.functions.get(definition.name)!.placeholders.decide()
}

/**
 * Counts the attempts of an invocation that were misspeculated or lost to a runner failure that was
 * not attributed to this call. Beyond `LOST_RUNS_MAX` the call itself is presumed to be the cause.
 */
export class LostRunCounter {
  #count = 0

  /** Throws FUNCTION_FAILED beyond the bound. */
  add(): void {
    this.#count += 1
    if (this.#count <= LOST_RUNS_MAX) return
    throw new Fault('FUNCTION_FAILED', { detail: `it had to be run ${this.#count} times` })
  }
}

/** The documents and pages that a speculative call receives with its arguments. */
export interface Prefetched {
  /** Those that the arguments name, then those of the pages. */
  readonly documents: readonly StoredDocument[]
  readonly pages: readonly PrefetchedPage[]
}

/** Returns the call that a runner executes for an attempt; speculative with `prefetched`. */
export function runnerCall(
  {
    definition,
    argumentsText,
    principal,
    nowMicros,
    seed,
    startByMillis,
    deadline,
    signal,
    placeholders,
  }: Invocation,
  prefetched?: Prefetched,
): RunnerCall {
  const { name, kind } = definition
  return {
    function: name,
    kind,
    argumentsText,
    identityText: principal?.identityText ?? 'null',
    nowMicros,
    seed,
    startByMillis,
    deadline,
    signal,
    prefetched: prefetched?.documents,
    prefetchedPages: prefetched?.pages,
    placeholders: placeholders !== null,
  }
}
