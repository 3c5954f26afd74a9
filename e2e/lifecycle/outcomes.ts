/** What became of a change, as far as its own requests tell. */
import type { Json } from '../application.ts'
import type { Asked, Attempt, Change, Reply } from './changes.ts'

export interface Outcome {
  readonly asked: Asked
  /** The answer that says it was applied and is no repeat, or a repeat of it; null for none. */
  readonly answer: Reply | null
  /** That it made; null where it was not applied or nobody knows. */
  readonly revision: number | null
  /** No answer says whether it was applied. */
  readonly isUnknown: boolean
  readonly refusals: readonly Attempt[]
  /** If it was applied, then within this time. */
  readonly window: { readonly from: number; readonly to: number }
  /** Of the request that applied it, where that one was answered. */
  readonly requestId: string | null
}

export function outcomeOf(asked: Asked): Outcome {
  const { attempts, lookups } = asked
  const applied = attempts.filter(({ reply }) => reply !== null && reply.status < 300)
  const refusals = attempts.filter(({ reply }) => reply !== null && reply.status >= 400)
  const unanswered = attempts.filter(({ reply }) => reply === null)
  const own = applied.find(({ reply }) => bodyOf(reply!.text).operation?.replayed !== true)
  const answer = (own ?? applied[0])?.reply ?? null
  const body = answer === null ? null : bodyOf(answer.text)
  // What is not replayed was applied by the very request that was answered.
  const tries = own === undefined ? unanswered : [own]
  const looked = (status: number) => lookups.filter(({ reply }) => reply?.status === status)
  const from = Math.min(...tries.map(({ sent }) => sent))
  const to = Math.max(...tries.map(({ answered }) => answered))
  return {
    asked,
    answer,
    revision: body === null ? null : Number(body.operation?.revision ?? body.revision),
    isUnknown: answer === null && refusals.length === 0,
    refusals,
    window: {
      from: Math.max(from, ...(answer === null ? [] : looked(404).map(({ sent }) => sent))),
      to: Math.min(to, ...[...applied, ...looked(200)].map(({ answered }) => answered)),
    },
    requestId: own?.reply?.requestId ?? null,
  }
}

/** What an answer says the change came to, as State.answer does. */
export function applicationOf({ resource }: Change, text: string): Json {
  const body = bodyOf(text)
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

/** Without who made it: that was one operator. */
export function historyEntry({ operatorId: _, ...entry }: Json): Json {
  return entry
}

export function bodyOf(text: string): Json {
  return JSON.parse(text)
}
