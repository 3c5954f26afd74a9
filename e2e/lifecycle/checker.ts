/**
 * Checks that the replies to clients are those of a server that applied one change after the other.
 * Each revision belongs to one change, which expected the state before it and was applied while its
 * request was pending. Each rejection and each read is correct for a state during its request.
 * Repeats return the first result; the audit and the histories have each change once.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Json } from '../application.ts'
import {
  type Attempt,
  type AuditRecord,
  type Evidence,
  RESOURCES,
  type Resource,
  type TrackedChange,
} from './changes.ts'
import { findOutcome, type Outcome, parseBody, parseResult } from './outcomes.ts'
import type { State } from './states.ts'

export type FindingKind =
  | 'lost update'
  | 'revision used twice'
  | 'revision without a change'
  | 'real-time violation'
  | 'unjustified rejection'
  | 'wrong result'
  | 'inconsistent replay'
  | 'unknown outcome'
  | 'wrong read'
  | 'wrong audit'
  | 'wrong history'

export interface Finding {
  readonly kind: FindingKind
  readonly text: string
}

/** Returns all findings; none for a valid history. */
export function check(evidence: Evidence): readonly Finding[] {
  const findings: Finding[] = []
  const report = (kind: FindingKind, what: string, about: unknown): void => {
    findings.push({ kind, text: `${kind}: ${what}: ${JSON.stringify(about)}` })
  }
  for (const resource of RESOURCES) new Check(evidence, resource, report).run()
  return findings
}

type Report = (kind: FindingKind, what: string, about: unknown) => void

/** A change in its order, between its predecessor and its successor. */
interface Step {
  readonly outcome: Outcome
  readonly state: State
  /** Earliest time of its application, given all changes before it. */
  readonly since: number
  /** Latest time of its application, given all changes after it. */
  until: number
}

/** A revision that no reply contains. */
interface Gap {
  readonly index: number
  readonly record: AuditRecord | undefined
  /** Latest time of the application of the next known change. */
  readonly until: number
}

class Check {
  readonly #evidence: Evidence
  readonly #resource: Resource
  readonly #report: Report
  readonly #outcomes: readonly Outcome[]
  /** The change at index n created the nth revision after the initial one. */
  readonly #steps: Step[] = []

  constructor(evidence: Evidence, resource: Resource, report: Report) {
    this.#evidence = evidence
    this.#resource = resource
    this.#report = report
    this.#outcomes = evidence.tracked
      .filter(({ change }) => change.resource === resource)
      .map(findOutcome)
  }

  run(): void {
    this.#order()
    this.#bound()
    for (const outcome of this.#outcomes) {
      this.#checkResults(outcome)
      for (const attempt of outcome.rejections) this.#checkRejection(outcome.tracked, attempt)
    }
    this.#checkReads()
    this.#checkAudit()
    if (this.#resource === 'configuration') this.#checkHistory()
  }

  get #initial() {
    return this.#evidence.initial[this.#resource]
  }

  #revisionOf(index: number): number {
    return this.#initial.revision + 1 + index
  }

  /** Returns the state before the change at `index`. */
  #before(index: number): State {
    return this.#steps[index - 1]?.state ?? this.#initial.state
  }

  /** Puts each change at its revision. A change that the model rejects there is a lost update. */
  #order(): void {
    const byRevision = new Map<number, Outcome>()
    for (const outcome of this.#outcomes) {
      const { revision } = outcome
      if (revision === null) continue
      const other = byRevision.get(revision)
      if (other !== undefined || revision <= this.#initial.revision) {
        this.#report('revision used twice', `${this.#resource} ${revision}`, [other, outcome])
      } else byRevision.set(revision, outcome)
    }
    const unknown = new Set(this.#outcomes.filter(({ isUnknown }) => isUnknown))
    const records = this.#evidence.audit[this.#resource]
    const last = Math.max(this.#initial.revision, ...byRevision.keys())
    const count = Math.max(last - this.#initial.revision, records.length)
    const known = Array.from({ length: count }, (_, at) => byRevision.get(this.#revisionOf(at)))
    for (const [index, found] of known.entries()) {
      const made =
        found ??
        this.#explain({ index, record: records[index], until: nextEnd(known, index) }, unknown)
      if (made === null) return
      const before = this.#before(index)
      const { change } = made.tracked
      const rejection = before.rejection(change)
      if (rejection !== null) {
        const what = `${this.#resource} ${this.#revisionOf(index)} follows an unexpected state`
        this.#report('lost update', `${what} (${rejection})`, made.tracked)
      }
      const { from, to } = made.window
      const since = Math.max(this.#steps[index - 1]?.since ?? 0, Math.min(from, to))
      const state = before.after(change)
      this.#steps.push({ outcome: made, state, since, until: to })
    }
  }

  /**
   * Finds the change of a Channel whose outcome is unknown and whose application the audit shows.
   * If several are possible, the time of its application is that of any of them.
   */
  #explain({ index, record, until }: Gap, unknown: Set<Outcome>): Outcome | null {
    const since = this.#steps[index - 1]?.since ?? 0
    const before = this.#before(index)
    const candidates = [...unknown].filter(({ tracked: { change }, window: { from, to } }) => {
      if (to < since || from > until || before.rejection(change) !== null) return false
      return isSame(before.after(change).audit, record)
    })
    const [first] = candidates
    if (first === undefined) {
      const where = `${this.#resource} ${this.#revisionOf(index)}`
      this.#report('revision without a change', where, record ?? null)
      return null
    }
    unknown.delete(first)
    const from = Math.min(...candidates.map(({ window }) => window.from))
    return {
      ...first,
      window: { from, to: Math.max(...candidates.map(({ window }) => window.to)) },
    }
  }

  /** Bounds the application of each change by those that follow it. */
  #bound(): void {
    let until = Number.POSITIVE_INFINITY
    for (const step of this.#steps.toReversed()) {
      const { tracked, window } = step.outcome
      const since = Math.max(step.since, window.from)
      if (since > window.to) this.#report('real-time violation', this.#resource, tracked)
      until = Math.min(until, window.to)
      step.until = until
    }
  }

  #checkResults({ tracked, result, revision, isUnknown }: Outcome): void {
    const { change, attempts, lookups } = tracked
    if (isUnknown && change.operationId !== null) {
      this.#report('unknown outcome', this.#resource, tracked)
    }
    if (result === null) {
      const isKnown = lookups.some(({ reply }) => reply !== null && reply.status !== 404)
      if (isKnown) this.#differs('a rejected operation has a record', tracked)
      return
    }
    const step = this.#steps[revision! - this.#initial.revision - 1]
    const actual = parseResult(change, result.text)
    if (step?.outcome.tracked === tracked && !isDeepStrictEqual(actual, step.state.result)) {
      this.#report('wrong result', `not ${JSON.stringify(step.state.result)}`, tracked)
    }
    const repeat = result.text.replace('"replayed":false', '"replayed":true')
    for (const { reply } of attempts) {
      if (reply === null || reply === result) continue
      if (reply.status !== 200 || reply.text !== repeat) this.#differs('the repeat', tracked)
    }
    const operation = JSON.stringify({ ...parseBody(result.text).operation, replayed: true })
    for (const { reply } of lookups) {
      if (reply?.status === 200 && reply.text !== operation) this.#differs('the record', tracked)
    }
  }

  #differs(what: string, tracked: TrackedChange): void {
    this.#report('inconsistent replay', `${this.#resource}: ${what}`, tracked)
  }

  #checkRejection(tracked: TrackedChange, { sent, received, reply }: Attempt): void {
    const code = parseBody(reply!.text).error?.code
    for (const state of this.#held(sent, received)) {
      if (state.rejection(tracked.change) === code) return
    }
    this.#report('unjustified rejection', `${this.#resource} with ${code}`, tracked)
  }

  #checkReads(): void {
    for (const observed of this.#evidence.observed) {
      if (observed.resource !== this.#resource) continue
      const index = observed.revision - this.#initial.revision - 1
      const state = index === -1 ? this.#initial.state : this.#steps[index]?.state
      const held = this.#held(observed.sent, observed.received)
      if (
        state === undefined ||
        !held.includes(state) ||
        !isDeepStrictEqual(observed.view, state.view)
      ) {
        this.#report('wrong read', `not ${JSON.stringify(state?.view ?? null)}`, observed)
      }
    }
  }

  /** Returns every state that may have been current at some time of the interval. */
  #held(from: number, to: number): readonly State[] {
    const steps = this.#steps
    // The last change that was certainly applied before `from`, and all possible ones until `to`.
    const first = lastIndex(steps, ({ until }) => until < from)
    const last = lastIndex(steps, ({ since }) => since <= to)
    const later = steps.slice(first + 1, last + 1).map(({ state }) => state)
    return [this.#before(first + 1), ...later]
  }

  #checkAudit(): void {
    const records = this.#evidence.audit[this.#resource]
    for (const [index, { outcome, state }] of this.#steps.entries()) {
      const record = records[index]
      const { requestId } = outcome
      const isOfRequest = requestId === null || requestId === record?.requestId
      if (isOfRequest && isSame(state.audit, record)) continue
      const where = `${this.#resource} ${this.#revisionOf(index)}`
      this.#report('wrong audit', where, { record, change: outcome.tracked.change, requestId })
      return
    }
  }

  #checkHistory(): void {
    const actual = this.#evidence.configurationHistory
    const changes: readonly Json[] = this.#steps.map(({ state }) => state.result)
    if (isDeepStrictEqual(actual, changes)) return
    const index = changes.findIndex((change, at) => !isDeepStrictEqual(change, actual[at]))
    const at = index === -1 ? changes.length : index
    this.#report('wrong history', `not ${JSON.stringify(changes[at] ?? null)}`, actual[at] ?? null)
  }
}

function isSame(expected: State['audit'], record: AuditRecord | undefined): boolean {
  return (
    expected !== null &&
    expected.operation === record?.operation &&
    expected.subject === record.subject
  )
}

function nextEnd(known: readonly (Outcome | undefined)[], index: number): number {
  const next = known.find((outcome, at) => at > index && outcome !== undefined)
  return next?.window.to ?? Number.POSITIVE_INFINITY
}

/** Returns the index of the last step that matches, -1 if none does. Matching steps come first. */
function lastIndex(steps: readonly Step[], matches: (step: Step) => boolean): number {
  let low = 0
  let high = steps.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (matches(steps[middle]!)) low = middle + 1
    else high = middle
  }
  return low - 1
}
