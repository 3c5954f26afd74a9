/** Runs `once` of a hook, the code that tells which event a delivery is. */
import type { DocumentStore } from '../../documents/store.ts'
import { Fault } from '../../errors/fault.ts'
import type { Span } from '../../telemetry/traces/spans.ts'
import { type HookManifest, onceFunction } from '../../value/http/routes.ts'
import { undeclaredFunction } from '../../value/manifest.ts'
import { encodeStored } from '../../value/stored.ts'
import type { ValueObject } from '../../value/values.ts'
import type { CancellationToken } from '../calls/outcomes.ts'
import { returnedValue } from '../calls/returned-documents.ts'
import type { ReadableCommits } from '../commits/committer.ts'
import { type InvocationPort, invokeAttempt } from '../invocations/attempt.ts'
import {
  beginInvocation,
  type InvocationContext,
  LostRunCounter,
} from '../invocations/invocation.ts'
import { conclude } from '../invocations/run-outcomes.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import { Transaction } from '../transactions/transaction.ts'

export interface OncePort extends InvocationPort {
  readonly store: DocumentStore
  readonly committer: ReadableCommits
}

export interface OnceCall {
  readonly prepared: PreparedRelease
  readonly hook: HookManifest
  /** `{ delivery }` without the fields that no repeat has in common. */
  readonly arguments: ValueObject
  readonly context: InvocationContext
  readonly trace?: Span | null | undefined
  readonly signal?: CancellationToken | undefined
}

/** @limit HTTP mounts: characters that `once` of a hook returns */
export const EVENT_CHARACTERS_MAX = 256

/** Returns the ID of the event. Throws FUNCTION_FAILED and every other failure of a Query. */
export async function runOnce(
  port: OncePort,
  { prepared, hook, arguments: value, context, trace, signal }: OnceCall,
): Promise<string> {
  const { store, committer } = port
  const definition = undeclaredFunction(onceFunction(hook.name), 'query')
  const call = { prepared, definition, argumentsText: encodeStored(value) }
  const input = { ...call, principal: null, context, trace }
  const invocation = beginInvocation(port, input, signal)
  const lostRuns = new LostRunCounter()
  const pin = committer.pinSnapshot()
  try {
    for (;;) {
      const transaction = new Transaction({
        store,
        release: prepared,
        snapshot: committer.durable,
        pending: null,
        nowMicros: invocation.nowMicros,
        seed: invocation.seed,
        writable: false,
      })
      const { outcome, calls } = await invokeAttempt(port, invocation, transaction)
      if (outcome.kind === 'returned') {
        const event = returnedValue(outcome.result, outcome.documents)
        if (typeof event === 'string' && event !== '' && event.length <= EVENT_CHARACTERS_MAX) {
          return event
        }
        const rule = `a text of 1 to ${EVENT_CHARACTERS_MAX} characters`
        throw new Fault('FUNCTION_FAILED', {
          detail: `once of ${hook.name} did not return ${rule}`,
        })
      }
      conclude(invocation, outcome, calls.failures, transaction.violations)
      lostRuns.add()
    }
  } finally {
    committer.unpinSnapshot(pin)
  }
}
