/** The outcome of a change, as far as its own requests show. */
import type { Json } from '../application.ts'
import type { Attempt, Change, Reply, TrackedChange } from './changes.ts'

export interface Outcome {
  readonly tracked: TrackedChange
  /** The reply of the first execution, or else of a replay; null if it was not applied. */
  readonly result: Reply | null
  /** The revision that it created; null if it was not applied or the outcome is unknown. */
  readonly revision: number | null
  /** True if no reply shows whether it was applied. */
  readonly isUnknown: boolean
  readonly rejections: readonly Attempt[]
  /** Bounds of the time of its application. */
  readonly window: { readonly from: number; readonly to: number }
  /** Request ID of the first execution, if that request has a reply. */
  readonly requestId: string | null
}

export function findOutcome(tracked: TrackedChange): Outcome {
  const { attempts, lookups } = tracked
  const applied = attempts.filter(({ reply }) => reply !== null && reply.status < 300)
  const rejections = attempts.filter(({ reply }) => reply !== null && reply.status >= 400)
  const unanswered = attempts.filter(({ reply }) => reply === null)
  const own = applied.find(({ reply }) => parseBody(reply!.text).operation?.replayed !== true)
  const result = (own ?? applied[0])?.reply ?? null
  const body = result === null ? null : parseBody(result.text)
  // The request with the first execution's reply applied the change itself.
  const tries = own === undefined ? unanswered : [own]
  const looked = (status: number) => lookups.filter(({ reply }) => reply?.status === status)
  const from = Math.min(...tries.map(({ sent }) => sent))
  const to = Math.max(...tries.map(({ received }) => received))
  return {
    tracked,
    result,
    revision: body === null ? null : Number(body.operation?.revision ?? body.revision),
    isUnknown: result === null && rejections.length === 0,
    rejections,
    window: {
      from: Math.max(from, ...(result === null ? [] : looked(404).map(({ sent }) => sent))),
      to: Math.min(to, ...[...applied, ...looked(200)].map(({ received }) => received)),
    },
    requestId: own?.reply?.requestId ?? null,
  }
}

/** Returns the result of the change in a reply, in the form of State.result. */
export function parseResult({ resource }: Change, text: string): Json {
  const body = parseBody(text)
  switch (resource) {
    case 'serving_policy': {
      const { mode, releases } = body.desired
      return { mode, releases }
    }
    case 'configuration':
      return historyEntry(body.change)
    case 'environment': {
      const { lifecycle, configuration } = body.desired
      return { lifecycle, configuration }
    }
    default: {
      const { releaseId, previousReleaseId } = body
      return { releaseId, previousReleaseId }
    }
  }
}

/** Removes the operator, since one operator made all changes. */
export function historyEntry({ operatorId: _, ...entry }: Json): Json {
  return entry
}

export function parseBody(text: string): Json {
  return JSON.parse(text)
}
