/** Calls that an application process passes to the main process, on both sides. */
import type { ActionOutcome } from '../../engine/actions/actions.ts'
import type { CallEngine } from '../../engine/engine.ts'
import type { MutationOutcome, ReplayRequest } from '../../engine/invocations/mutations.ts'
import type { QueryRequest } from '../../engine/invocations/requests.ts'
import type { Release } from '../../engine/releases/executable-release.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import type { Span, Traces } from '../../telemetry/traces/spans.ts'
import type { ReleaseId } from '../../value/ids.ts'
import { decodeStored, encodeStored } from '../../value/stored.ts'
import type { ValueObject } from '../../value/values.ts'
import type { Channel } from './channel.ts'
import type { ApplicationSide, MainSide, SentCall } from './messages.ts'

type ToMain = Channel<ApplicationSide, MainSide>
type RemoteEngine = Pick<CallEngine, 'mutation' | 'action' | 'replay'>

/** Executes calls in the main process. */
export function remoteCalls(channel: ToMain): RemoteEngine {
  return {
    mutation: ({ operationId, target, caller, ...request }) =>
      channel.ask<MutationOutcome>({
        kind: 'mutation',
        call: sentCall(request),
        operation: { operationId, target, caller },
      }),
    action: (request) =>
      channel.ask<ActionOutcome>({ kind: 'action', call: sentCall(request) }, signalOf(request)),
    replay: (request, callers) => replay(channel, request, callers),
  }
}

/** Asks without callers first: they are read only for an operation that is known. */
async function replay(
  channel: ToMain,
  request: ReplayRequest,
  callers: AsyncIterable<string>,
): Promise<MutationOutcome | null> {
  const { operationId, target, function: name } = request
  const sent = {
    kind: 'replay' as const,
    operationId,
    target,
    function: name,
    arguments: encodeStored(request.arguments),
  }
  try {
    return await channel.ask<MutationOutcome | null>({ ...sent, callers: [] })
  } catch (error) {
    if (!isFault(error, 'OPERATION_REUSED')) throw error
  }
  return channel.ask<MutationOutcome | null>({ ...sent, callers: await Array.fromAsync(callers) })
}

function sentCall({
  release,
  definition,
  principal,
  context,
  trace,
  ...request
}: QueryRequest): SentCall {
  return {
    releaseId: release.releaseId,
    function: definition.name,
    arguments: encodeStored(request.arguments),
    principal: principal === null ? null : { ...principal },
    context,
    traceHeaders: trace?.headers() ?? [],
  }
}

function signalOf({ signal }: QueryRequest): AbortSignal | undefined {
  return signal instanceof AbortSignal ? signal : undefined
}

export interface AnsweringOptions {
  readonly engine: RemoteEngine
  readonly load: (releaseId: ReleaseId) => Release | Promise<Release>
  readonly traces: Traces | null
}

type CallRequest = Extract<
  ApplicationSide['request'],
  { readonly kind: 'mutation' | 'action' | 'replay' }
>

/** Answers the calls of an application process, which has checked who calls. */
export async function answerCall(
  { engine, load, traces }: AnsweringOptions,
  request: CallRequest,
  signal: AbortSignal,
): Promise<MutationOutcome | ActionOutcome | null> {
  if (request.kind === 'replay') {
    const { callers, ...replayed } = request
    const given = decodeStored(replayed.arguments) as ValueObject
    return engine.replay({ ...replayed, arguments: given }, each(callers))
  }
  const { call } = request
  const release = await load(call.releaseId)
  const definition = release.functions.get(call.function)
  if (definition === undefined) throw new Fault('FUNCTION_NOT_FOUND')
  const trace = traceOf(traces, call)
  const requested = {
    release,
    definition,
    arguments: decodeStored(call.arguments) as ValueObject,
    principal: call.principal,
    context: call.context,
    trace,
  }
  return request.kind === 'mutation'
    ? engine.mutation({ ...requested, ...request.operation })
    : engine.action({ ...requested, signal })
}

function traceOf(traces: Traces | null, { traceHeaders }: SentCall): Span | null {
  if (traces === null || traceHeaders.length === 0) return null
  return traces.started(new Headers(traceHeaders.map(([name, value]) => [name, value])))
}

async function* each<T>(values: readonly T[]): AsyncGenerator<T> {
  yield* values
}
