/**
 * Checks what subscriptions received: each state is the result of its Query at its snapshot, as the
 * commits up to there make it; revisions and snapshots are in order; none ends behind.
 */
import { isDeepStrictEqual } from 'node:util'
import { Documents } from './documents.ts'
import type { Commit, LiveHistory, Received, ReceivedState, Watch } from './history.ts'

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
      find(`it is said to be current at ${each.sequence} without a state`)
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

/** A state, and a sequence at which it must be the result of its Query. */
interface Claim {
  readonly watch: Watch
  readonly state: ReceivedState
  readonly sequence: number
  readonly text: string
}

function claimsOf(watch: Watch): Claim[] {
  const claims: Claim[] = []
  let state: ReceivedState | null = null
  for (const each of watch.received) {
    if (each.type === 'state') state = each
    const claim = claimOf(each, state)
    if (claim !== null && state !== null) claims.push({ watch, state, ...claim })
  }
  return claims
}

function claimOf(each: Received, state: ReceivedState | null) {
  if (each.type === 'state') {
    return { sequence: each.snapshot, text: `revision ${each.revision} of ${each.snapshot}` }
  }
  // A pong is about all subscriptions of a connection, so this one may have a newer state.
  if (each.type !== 'current' || state === null || each.sequence < state.snapshot) return null
  const { sequence } = each
  const { revision, snapshot } = state
  const text = `revision ${revision} of ${snapshot}, which is said to be current at ${sequence},`
  return { sequence, text }
}

/** Compares every state with the model, which advances from commit to commit. */
function valueFindings(sorted: readonly Commit[], watches: readonly Watch[]): string[] {
  const claims = watches.flatMap(claimsOf).sort((a, b) => a.sequence - b.sequence)
  const documents = new Documents()
  const findings: string[] = []
  let next = 0
  for (const { watch, state, sequence, text } of claims) {
    while (next < sorted.length && sorted[next]!.sequence <= sequence) {
      documents.apply(sorted[next++]!.changes)
    }
    const { query } = watch
    const expected = documents.answer(query)
    const padding = query.name === 'padded' ? query.bytes : 0
    if (isDeepStrictEqual(state.answer, expected) && state.padding === padding) continue
    findings.push(
      `${describe(watch)}: ${text} shows [${state.answer}] and ${state.padding} bytes, ` +
        `the commits make [${expected}] and ${padding}`,
    )
  }
  return findings
}

function describe({ subscriber, query }: Watch): string {
  return `subscriber ${subscriber}, ${JSON.stringify(query)}`
}
