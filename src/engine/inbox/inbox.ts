/**
 * The inbox: stores each event of another service once, as scheduled work. A delivery is a Mutation
 * of the server under an operation ID that its event decides, so that a repeat finds the record of
 * the first one also after a crash, and the work is durable before the service is answered.
 */
import { Fault } from '../../errors/fault.ts'
import type { Span } from '../../telemetry/traces/spans.ts'
import { type HookManifest, onceFunction } from '../../value/http/routes.ts'
import { undeclaredFunction } from '../../value/manifest.ts'
import { encodeStored } from '../../value/stored.ts'
import type { ValueObject } from '../../value/values.ts'
import type { CancellationToken } from '../calls/outcomes.ts'
import type { InvocationContext } from '../invocations/invocation.ts'
import type { Mutations } from '../invocations/mutations.ts'
import { INVOCATIONS_MAX } from '../limits.ts'
import type { ActiveCalls } from '../releases/active-calls.ts'
import type { Release } from '../releases/executable-release.ts'
import type { Preparations } from '../releases/preparations.ts'
import type { PreparedRelease } from '../releases/prepared-release.ts'
import { type EndedWork, insertWorkAs, type Rerun } from '../scheduled-work/scheduled-documents.ts'
import { type OncePort, runOnce } from './once-code.ts'
import { checkRoom } from './room.ts'

export interface InboxPort extends OncePort {
  readonly mutations: Pick<Mutations, 'invoke'>
  readonly preparations: Preparations
  readonly inFlight: ActiveCalls
  /** Makes failed work run again. */
  readonly rerun: (scheduledId: string, rerun: Omit<Rerun, 'dueAtMicros'>) => Promise<unknown>
  /** Resolves with the work once it has ended; null if no request waits any longer. */
  readonly whenEnded: (scheduledId: string, signal?: AbortSignal) => Promise<EndedWork | null>
  /** Resolves with the work; null if it has not ended. */
  readonly readEnded: (scheduledId: string) => Promise<EndedWork | null>
}

export interface EndRequest extends Pick<HookRequest, 'release' | 'hook'> {
  /** Ends the wait of a service that is gone. */
  readonly signal: AbortSignal
}

interface HookRequest {
  readonly release: Release
  readonly hook: HookManifest
  readonly context: InvocationContext
  readonly trace?: Span | null | undefined
}

export interface EventRequest extends HookRequest {
  /** `{ delivery }` without the fields that no repeat has in common. */
  readonly arguments: ValueObject
  readonly signal?: CancellationToken | undefined
}

export interface DeliveryRequest extends HookRequest {
  readonly mount: string
  /** The ID of the event, as the service or `once` names it. */
  readonly event: string
  /** The operation ID of the event. */
  readonly operationId: string
  /** Operation IDs that the event had under earlier keys, whose records count as well. */
  readonly earlierIds: readonly string[]
  /** The ID of the new work, and the delivery in it. */
  readonly scheduledId: string
  /** `{ delivery }` without its JSON. */
  readonly arguments: ValueObject
}

export interface AcceptedDelivery {
  /** The work of the first delivery of the event. */
  readonly scheduledId: string
  readonly replayed: boolean
}

export class Inbox {
  readonly #port: InboxPort

  constructor(port: InboxPort) {
    this.#port = port
  }

  /** Runs `once` of the hook and returns its text. Rejects with the failures of a Query. */
  eventOf({ release, ...call }: EventRequest): Promise<string> {
    return this.#within(release, (prepared) => runOnce(this.#port, { ...call, prepared }))
  }

  /**
   * Stores the delivery of a new event, to run at once, and resolves when that is durable. Rejects
   * with the failures of a Mutation where it is not known to be stored, so that the service tries
   * again.
   */
  accept(request: DeliveryRequest): Promise<AcceptedDelivery> {
    return this.#within(request.release, (prepared) => this.#accept(request, prepared))
  }

  /**
   * Resolves with the end of the work of a delivery, for a hook that is answered with its result;
   * null if the service is answered without it. A repeat runs failed work again: the service
   * sends it since the answer was the failure. Rejects with the failures of a Mutation.
   */
  async endOf(
    { scheduledId, replayed }: AcceptedDelivery,
    { release, hook, signal }: EndRequest,
  ): Promise<EndedWork | null> {
    const { rerun, readEnded, whenEnded } = this.#port
    if (replayed && (await readEnded(scheduledId))?.state === 'failed') {
      const { releaseId } = release
      const next = { function: hook.function, kind: handlerKind(release, hook), releaseId }
      await rerun(scheduledId, { ...next, rerunBy: null })
    }
    return whenEnded(scheduledId, signal)
  }

  async #accept(request: DeliveryRequest, prepared: PreparedRelease): Promise<AcceptedDelivery> {
    const { mutations, store, pendingWork } = this.#port
    for (const id of request.earlierIds) {
      const record = await store.operation(id)
      if (record !== null) return { scheduledId: JSON.parse(record.result), replayed: true }
    }
    const { hook, mount, scheduledId, operationId, context, trace } = request
    const outcome = await mutations.invoke({
      prepared,
      // The Mutation of the server has the name of `once` in its record.
      definition: undeclaredFunction(onceFunction(hook.name), 'mutation'),
      // All that the repeats of one event have in common. Signatures, times and bodies may differ.
      argumentsText: JSON.stringify(request.event),
      principal: null,
      context,
      trace,
      operationId,
      target: 'http',
      caller: mount,
      perform: async (transaction, { nowMicros }) => {
        checkRoom(pendingWork, mount)
        await insertWorkAs(transaction.asServer(), scheduledId, {
          function: hook.function,
          kind: handlerKind(prepared.release, hook),
          releaseId: prepared.release.releaseId,
          argumentsText: encodeStored(request.arguments),
          source: 'http',
          cron: null,
          http: { mount, route: hook.name, event: request.event, ...headOf(request) },
          ...(hook.reply === 'result' && { keepsResult: true }),
          dueAtMicros: nowMicros,
        })
        return JSON.stringify(scheduledId)
      },
    })
    const { resultText, replayed } = outcome
    return { scheduledId: JSON.parse(resultText), replayed }
  }

  /** Keeps the resources of the Release while the task runs. Rejects with BUSY beyond the bound. */
  async #within<T>(release: Release, task: (prepared: PreparedRelease) => Promise<T>): Promise<T> {
    const { inFlight, preparations } = this.#port
    if (inFlight.count >= INVOCATIONS_MAX) throw new Fault('BUSY')
    const end = inFlight.begin(release)
    try {
      return await task(await preparations.prepare(release))
    } finally {
      end()
    }
  }
}

/** Returns the kind of the handler of a hook of the Release. */
export function handlerKind(release: Release, hook: HookManifest): 'mutation' | 'action' {
  // The manifest was checked: the handler is one of the two.
  return release.functions.get(hook.function)!.kind === 'action' ? 'action' : 'mutation'
}

/** Returns what is kept of a request for as long as its work is listed. */
function headOf({ arguments: given }: Pick<DeliveryRequest, 'arguments'>) {
  const delivery = given.get('delivery') as ValueObject
  return {
    method: delivery.get('method') as string,
    path: delivery.get('path') as string,
    bytes: (delivery.get('body') as Uint8Array).length,
  }
}
