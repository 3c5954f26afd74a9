/**
 * Checks what subscriptions received: each state is the result of its Query at its snapshot, as the
 * commits up to there make it; revisions and snapshots are in order; none ends behind.
 */
import { isDeepStrictEqual } from 'node:util'
import { Documents } from './documents.ts'
import type { Commit, LiveHistory, ReceivedState, Watch, WatchedQuery } from './history.ts'

/** Returns a sentence for each finding. */
export function check({ commits, watches, finalRelease }: LiveHistory): string[] {
  const sorted = commits.toSorted((a, b) => a.sequence - b.sequence)
  const last = sorted.at(-1)?.sequence ?? 0
  return [
    ...duplicates(sorted),
    ...watches.flatMap(orderFindings),
    ...watches.flatMap((watch) => endFindings(watch, last, finalRelease)),
    ...valueFindings(sorted, watches),
  ]
}

function duplicates(sorted: readonly Commit[]): string[] {
  const repeated = sorted.filter(({ sequence }, i) => sequence === sorted[i - 1]?.sequence)
  return repeated.map(({ sequence }) => `two Mutations committed as ${sequence}`)
}

/** Checks the order of the messages of one subscription. */
function orderFindings(watch: Watch): string[] {
  const findings: string[] = []
  const find = (text: string) => findings.push(`${describe(watch)}: ${text}`)
  let before: ReceivedState | null = null
  let resyncs: string[] = []
  for (const each of watch.received) {
    if (each.type === 'resync') resyncs.push(each.reason)
    if (each.type === 'current' && before === null) {
      find(`a pong calls it current at ${each.sequence} without a state`)
    }
    if (each.type !== 'state') continue
    const { revision, snapshot, release } = each
    if (revision !== (before?.revision ?? 0) + 1) {
      find(`revision ${revision} follows ${before?.revision ?? 0}`)
    }
    if (before === null) {
      if (snapshot < watch.knownBefore) {
        find(`the first state is of ${snapshot}, before ${watch.knownBefore}, which was known`)
      }
    } else {
      if (snapshot < before.snapshot) find(`a state of ${snapshot} follows ${before.snapshot}`)
      if (each.isRepeated && resyncs.length === 0) find(`revision ${revision} changes nothing`)
      if (release !== before.release && !resyncs.includes('release_changed')) {
        find(`revision ${revision} is of another Release without release_changed`)
      }
    }
    resyncs = []
    before = each
  }
  return findings
}

function endFindings(watch: Watch, last: number, finalRelease: number): string[] {
  if (!watch.isFinal) return []
  const { received } = watch
  const newest = received.findLast((each) => each.type === 'state')
  const current = received.findLast((each) => each.type === 'current')
  if (newest === undefined) return [`${describe(watch)}: it has no state`]
  const findings: string[] = []
  if ((current?.sequence ?? -1) < last) {
    findings.push(`${describe(watch)}: it ends at ${current?.sequence}, behind ${last}`)
  }
  if (newest.release !== finalRelease) {
    findings.push(`${describe(watch)}: it ends with Release ${newest.release}`)
  }
  return findings
}

/**
 * A state, and the sequences at one of which it must be the result of its Query. A state holds at
 * its snapshot. A pong says that the state is current at its sequence or a later one: states are
 * coalesced, and none is sent for changes that cancel each other out.
 */
interface Claim {
  readonly watch: Watch
  readonly state: ReceivedState
  readonly from: number
  readonly to: number
  readonly text: string
}

function claimsOf(watch: Watch): Claim[] {
  const claims: Claim[] = []
  let state: ReceivedState | null = null
  for (const [i, each] of watch.received.entries()) {
    if (each.type === 'state') {
      state = each
      const { snapshot, revision } = each
      const text = `revision ${revision} of ${snapshot}`
      claims.push({ watch, state, from: snapshot, to: snapshot, text })
    }
    // A pong is about all subscriptions of a connection, so this one may have a newer state.
    if (each.type !== 'current' || state === null || each.sequence < state.snapshot) continue
    const { revision, snapshot } = state
    const pong = `which a pong calls current at ${each.sequence},`
    const text = `revision ${revision} of ${snapshot}, ${pong}`
    const next = watch.received.slice(i).find(({ type }) => type === 'state')
    const to = next?.type === 'state' ? next.snapshot - 1 : Number.POSITIVE_INFINITY
    claims.push({ watch, state, from: each.sequence, to, text })
  }
  return claims
}

/** Compares every state with the model, which advances from commit to commit. */
function valueFindings(sorted: readonly Commit[], watches: readonly Watch[]): string[] {
  const claims = watches.flatMap(claimsOf).sort((a, b) => a.from - b.from)
  const model = new Model()
  for (const claim of claims) {
    while (sorted.length > model.commits && sorted[model.commits]!.sequence <= claim.from) {
      model.apply(sorted[model.commits]!)
    }
    model.check(claim)
  }
  for (const commit of sorted.slice(model.commits)) model.apply(commit)
  return model.findings()
}

class Model {
  readonly #documents = new Documents()
  readonly #findings: string[] = []
  /** Claims that did not hold yet, with their findings. */
  readonly #open = new Map<Claim, string>()
  commits = 0

  apply({ sequence, changes }: Commit): void {
    for (const [claim, finding] of this.#open) {
      if (sequence <= claim.to) continue
      this.#findings.push(finding)
      this.#open.delete(claim)
    }
    this.#documents.apply(changes)
    this.commits += 1
    for (const claim of this.#open.keys()) if (this.#holds(claim)) this.#open.delete(claim)
  }

  check(claim: Claim): void {
    if (this.#holds(claim)) return
    const { watch, state, text } = claim
    const { query } = watch
    const finding =
      `${describe(watch)}: ${text} shows [${state.answer}] and ${state.padding} bytes, ` +
      `the commits make [${this.#documents.answer(query)}] and ${paddingOf(query)}`
    this.#open.set(claim, finding)
  }

  findings(): string[] {
    return [...this.#findings, ...this.#open.values()]
  }

  #holds({ watch: { query }, state }: Claim): boolean {
    if (state.padding !== paddingOf(query)) return false
    return isDeepStrictEqual(state.answer, this.#documents.answer(query))
  }
}

function paddingOf(query: WatchedQuery): number {
  return query.name === 'padded' ? query.bytes : 0
}

function describe({ subscriber, query }: Watch): string {
  return `subscriber ${subscriber}, ${JSON.stringify(query)}`
}
