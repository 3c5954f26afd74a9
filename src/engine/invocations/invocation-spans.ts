/** Spans of invocations, of their commits and of work that no request causes. */
import type { MaybePromise } from '../../system/maybe-promise.ts'
import { failureEnd } from '../../telemetry/traces/failures.ts'
import type { Span, SpanEnd, SpanStart, Traces } from '../../telemetry/traces/spans.ts'
import type { FunctionManifest } from '../../value/manifest.ts'
import type { CommitOutcome } from '../commits/committer.ts'
import type { InvocationContext } from './invocation.ts'

export interface TracedCall {
  readonly definition: FunctionManifest
  readonly context: InvocationContext
  /** The span that causes the call; absent where nothing is traced. */
  readonly trace?: Span | null | undefined
}

/** Name of the database that holds documents, as OpenTelemetry spells it. */
export type DocumentSystem = 'postgresql' | 'sqlite'

/** Starts the span of an invocation; null if its trace is not exported. */
export function startInvocation(
  { definition, context, trace }: TracedCall,
  releaseId: string,
): Span | null {
  if (!trace?.isSampled) return null
  return trace.child({
    name: `${definition.kind} ${definition.name}`,
    kind: 'internal',
    attributes: {
      'svc.function.name': definition.name,
      'svc.function.kind': definition.kind,
      'svc.release.id': releaseId,
      'svc.request.id': context.requestId,
      'svc.invocation.id': context.invocationId,
      'svc.client.id': context.clientId,
      'svc.credential.id': context.credentialId,
      'svc.scheduled.id': context.scheduledId,
    },
  })
}

/** Starts the span of a run, which begins a trace where no request causes it. */
export function startRun(
  traces: Traces | null | undefined,
  run: Pick<SpanStart, 'name' | 'attributes'>,
  cause: Span | null = null,
): Span | null {
  const start: SpanStart = { ...run, kind: 'internal' }
  return cause?.child(start) ?? traces?.root(start) ?? null
}

/** Ends the span with the outcome of the call, which is returned unchanged. */
export function endWith<T>(span: Span, call: Promise<T>): Promise<T> {
  call.then(
    () => span.end(),
    (error: unknown) => span.end(failureEnd(error)),
  )
  return call
}

/**
 * Performs a commit, and ends its span once the commit is durable or has failed. Returns and throws
 * what `commit` does.
 */
export function tracedCommit(
  span: Span,
  commit: () => MaybePromise<CommitOutcome>,
): MaybePromise<CommitOutcome> {
  try {
    const outcome = commit()
    commitEnd(outcome).then(
      (end) => span.end(end),
      (error: unknown) => span.end(failureEnd(error)),
    )
    return outcome
  } catch (error) {
    span.end(failureEnd(error))
    throw error
  }
}

async function commitEnd(outcome: MaybePromise<CommitOutcome>): Promise<SpanEnd> {
  const known = await outcome
  if (known.kind === 'conflict') return { attributes: { 'svc.commit.outcome': 'conflict' } }
  await known.durable
  const { sequence } = known
  return { attributes: { 'svc.commit.outcome': 'durable', 'svc.commit.sequence': sequence } }
}
