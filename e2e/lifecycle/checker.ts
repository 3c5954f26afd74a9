/**
 * Whether what clients were answered is what one server would have answered that applied one change
 * after the other. Each revision is of one change, which expected its predecessor and was applied
 * while it was asked for; each refusal and each read is true of a revision that held meanwhile;
 * whoever asks again is told the same; the audit and the histories tell every change once.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Json } from '../application.ts'
import {
  type Asked,
  type Attempt,
  type AuditRecord,
  type Evidence,
  RESOURCES,
  type Resource,
} from './changes.ts'
import { applicationOf, bodyOf, type Outcome, outcomeOf } from './outcomes.ts'
import type { State } from './states.ts'

export type FindingKind =
  | 'lost update'
  | 'revision used twice'
  | 'revision of nobody'
  | 'against the clock'
  | 'refused without cause'
  | 'wrong answer'
  | 'answered differently'
  | 'never answered'
  | 'wrong read'
  | 'wrong audit'
  | 'wrong history'

export interface Finding {
  readonly kind: FindingKind
  readonly text: string
}

/** No finding: everything is as it should be. */
export function check(evidence: Evidence): readonly Finding[] {
  const findings: Finding[] = []
  const report = (kind: FindingKind, what: string, about: unknown): void => {
    findings.push({ kind, text: `${kind}: ${what}: ${JSON.stringify(about)}` })
  }
  for (const resource of RESOURCES) new Check(evidence, resource, report).run()
  return findings
}

type Report = (kind: FindingKind, what: string, about: unknown) => void

/** A change of the order, between its predecessor and its successor. */
interface Step {
  readonly outcome: Outcome
  readonly state: State
  /** It was applied no sooner, given all changes before it, */
  readonly since: number
  /** and no later than this, given all changes after it. */
  until: number
}

/** A revision that no answer tells of. */
interface Gap {
  readonly place: number
  readonly record: AuditRecord | undefined
  /** When the first of those that follow it was applied at the latest. */
  readonly until: number
}

class Check {
  readonly #evidence: Evidence
  readonly #resource: Resource
  readonly #report: Report
  readonly #outcomes: readonly Outcome[]
  /** At n the change that made the nth revision after the first. */
  readonly #steps: Step[] = []

  constructor(evidence: Evidence, resource: Resource, report: Report) {
    this.#evidence = evidence
    this.#resource = resource
    this.#report = report
    this.#outcomes = evidence.asked
      .filter(({ change }) => change.resource === resource)
      .map(outcomeOf)
  }

  run(): void {
    this.#order()
    this.#bound()
    for (const outcome of this.#outcomes) {
      this.#checkAnswers(outcome)
      for (const attempt of outcome.refusals) this.#checkRefusal(outcome.asked, attempt)
    }
    this.#checkReads()
    this.#checkAudit()
    if (this.#resource === 'configuration') this.#checkHistory()
  }

  get #initial() {
    return this.#evidence.initial[this.#resource]
  }

  #revisionOf(place: number): number {
    return this.#initial.revision + 1 + place
  }

  /** The state that the change at `place` found. */
  #before(place: number): State {
    return this.#steps[place - 1]?.state ?? this.#initial.state
  }

  /** Puts each change at its revision; what the model refuses there was a lost update. */
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
    for (const [place, found] of known.entries()) {
      const made =
        found ??
        this.#explain({ place, record: records[place], until: nextEnd(known, place) }, unknown)
      if (made === null) return
      const before = this.#before(place)
      const { change } = made.asked
      const refusal = before.refusal(change)
      if (refusal !== null) {
        const what = `${this.#resource} ${this.#revisionOf(place)} follows what it did not expect`
        this.#report('lost update', `${what} (${refusal})`, made.asked)
      }
      const { from, to } = made.window
      const since = Math.max(this.#steps[place - 1]?.since ?? 0, Math.min(from, to))
      const state = before.after(change)
      this.#steps.push({ outcome: made, state, since, until: to })
    }
  }

  /**
   * The change that nobody heard of again and that the audit tells: of a Channel alone. Where it
   * may be any of several, it may have been applied whenever one of them may.
   */
  #explain({ place, record, until }: Gap, unknown: Set<Outcome>): Outcome | null {
    const since = this.#steps[place - 1]?.since ?? 0
    const before = this.#before(place)
    const candidates = [...unknown].filter(({ asked: { change }, window: { from, to } }) => {
      if (to < since || from > until || before.refusal(change) !== null) return false
      return isSame(before.after(change).audit, record)
    })
    const [first] = candidates
    if (first === undefined) {
      const where = `${this.#resource} ${this.#revisionOf(place)}`
      this.#report('revision of nobody', where, record ?? null)
      return null
    }
    unknown.delete(first)
    const from = Math.min(...candidates.map(({ window }) => window.from))
    return {
      ...first,
      window: { from, to: Math.max(...candidates.map(({ window }) => window.to)) },
    }
  }

  /** A change is applied before all that follow it. */
  #bound(): void {
    let until = Number.POSITIVE_INFINITY
    for (const step of this.#steps.toReversed()) {
      const { asked, window } = step.outcome
      const since = Math.max(step.since, window.from)
      if (since > window.to) this.#report('against the clock', this.#resource, asked)
      until = Math.min(until, window.to)
      step.until = until
    }
  }

  #checkAnswers({ asked, answer, revision, isUnknown }: Outcome): void {
    const { change, attempts, lookups } = asked
    if (isUnknown && change.operationId !== null) {
      this.#report('never answered', this.#resource, asked)
    }
    if (answer === null) {
      const isKnown = lookups.some(({ reply }) => reply !== null && reply.status !== 404)
      if (isKnown) this.#differs('a refused one is known', asked)
      return
    }
    const step = this.#steps[revision! - this.#initial.revision - 1]
    const told = applicationOf(change, answer.text)
    if (step?.outcome.asked === asked && !isDeepStrictEqual(told, step.state.answer)) {
      this.#report('wrong answer', `not ${JSON.stringify(step.state.answer)}`, asked)
    }
    const repeat = answer.text.replace('"replayed":false', '"replayed":true')
    for (const { reply } of attempts) {
      if (reply === null || reply === answer) continue
      if (reply.status !== 200 || reply.text !== repeat) this.#differs('the repeat', asked)
    }
    const operation = JSON.stringify({ ...bodyOf(answer.text).operation, replayed: true })
    for (const { reply } of lookups) {
      if (reply?.status === 200 && reply.text !== operation) this.#differs('the look-up', asked)
    }
  }

  #differs(what: string, asked: Asked): void {
    this.#report('answered differently', `${this.#resource}: ${what}`, asked)
  }

  #checkRefusal(asked: Asked, { sent, answered, reply }: Attempt): void {
    const code = bodyOf(reply!.text).error?.code
    for (const state of this.#held(sent, answered)) {
      if (state.refusal(asked.change) === code) return
    }
    this.#report('refused without cause', `${this.#resource} with ${code}`, asked)
  }

  #checkReads(): void {
    for (const seen of this.#evidence.seen) {
      if (seen.resource !== this.#resource) continue
      const place = seen.revision - this.#initial.revision - 1
      const state = place === -1 ? this.#initial.state : this.#steps[place]?.state
      const held = this.#held(seen.sent, seen.answered)
      if (
        state === undefined ||
        !held.includes(state) ||
        !isDeepStrictEqual(seen.view, state.view)
      ) {
        this.#report('wrong read', `not ${JSON.stringify(state?.view ?? null)}`, seen)
      }
    }
  }

  /** Every state that may have been the current one at some moment of that time. */
  #held(from: number, to: number): readonly State[] {
    const steps = this.#steps
    // The last one that was applied for certain before `from`, and all that may have been by `to`.
    const first = lastPlace(steps, ({ until }) => until < from)
    const last = lastPlace(steps, ({ since }) => since <= to)
    const later = steps.slice(first + 1, last + 1).map(({ state }) => state)
    return [this.#before(first + 1), ...later]
  }

  #checkAudit(): void {
    const records = this.#evidence.audit[this.#resource]
    for (const [place, { outcome, state }] of this.#steps.entries()) {
      const record = records[place]
      const { requestId } = outcome
      const isOfRequest = requestId === null || requestId === record?.requestId
      if (isOfRequest && isSame(state.audit, record)) continue
      const where = `${this.#resource} ${this.#revisionOf(place)}`
      this.#report('wrong audit', where, { record, change: outcome.asked.change, requestId })
      return
    }
  }

  #checkHistory(): void {
    const told = this.#evidence.configurationHistory
    const changes: readonly Json[] = this.#steps.map(({ state }) => state.answer)
    if (isDeepStrictEqual(told, changes)) return
    const place = changes.findIndex((change, at) => !isDeepStrictEqual(change, told[at]))
    const at = place === -1 ? changes.length : place
    this.#report('wrong history', `not ${JSON.stringify(changes[at] ?? null)}`, told[at] ?? null)
  }
}

function isSame(expected: State['audit'], record: AuditRecord | undefined): boolean {
  return (
    expected !== null &&
    expected.operation === record?.operation &&
    expected.subject === record.subject
  )
}

function nextEnd(known: readonly (Outcome | undefined)[], place: number): number {
  const next = known.find((outcome, at) => at > place && outcome !== undefined)
  return next?.window.to ?? Number.POSITIVE_INFINITY
}

/** -1 where none is so; those that are so come first. */
function lastPlace(steps: readonly Step[], isSo: (step: Step) => boolean): number {
  let low = 0
  let high = steps.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (isSo(steps[middle]!)) low = middle + 1
    else high = middle
  }
  return low - 1
}
