/**
 * Whether a history is strictly serializable. Orders of versions are inferred from what was read,
 * dependencies from the orders, and every cycle of dependencies is an anomaly (Adya's thesis;
 * Kingsbury and Alvaro, "Elle", VLDB 2020). It knows nothing of sequences: they are the oracle's.
 */
import type { Anomaly, AnomalyKind } from './anomalies.ts'
import {
  DependencyGraph,
  describeCycle,
  type Edge,
  REAL_TIME,
  RW,
  RW_PREDICATE,
  WR,
  WW,
} from './graph.ts'
import type { History } from './history.ts'
import { orderLists } from './list-orders.ts'
import { type Observations, observe } from './observations.ts'
import { orderRegisters } from './register-orders.ts'
import { Verdict } from './verdicts.ts'

/** From the strongest class on; a cycle begins with the edge that makes it one of its class. */
const CLASSES: readonly {
  readonly kind: AnomalyKind
  readonly first: number
  readonly rest: number
}[] = [
  { kind: 'G0', first: WW, rest: WW },
  { kind: 'G1c', first: WR, rest: WW | WR },
  { kind: 'G-single', first: RW | RW_PREDICATE, rest: WW | WR },
  { kind: 'G2-item', first: RW, rest: WW | WR | RW },
  { kind: 'G2', first: RW_PREDICATE, rest: WW | WR | RW | RW_PREDICATE },
  { kind: 'real time', first: REAL_TIME, rest: WW | WR | RW | RW_PREDICATE | REAL_TIME },
]

export function check(history: History): readonly Anomaly[] {
  const seen = observe(history)
  const verdict = new Verdict(history, unknownButSeen(history, seen))
  verdict.anomalies.push(...seen.anomalies)
  const graph = new DependencyGraph(history.length)
  orderLists(verdict, graph, seen.lists, seen.appends)
  orderRegisters(verdict, graph, seen)
  addRealTime(verdict, graph, history)
  const reported = new Set<number>()
  for (const { kind, first, rest } of CLASSES) {
    for (const component of graph.components(first | rest)) {
      // What holds a stronger cycle was shown with that one.
      if (component.some((by) => reported.has(by))) continue
      const cycle = graph.shortestCycle(component, first, rest)
      if (cycle === null) continue
      for (const by of component) reported.add(by)
      verdict.report(
        kind,
        membersOf(cycle),
        describeCycle(cycle, (by) => nameOf(history, by)),
      )
    }
  }
  return verdict.anomalies
}

/** How many of each kind, and the first of them in full. */
export function summarize(anomalies: readonly Anomaly[], shown = 10): string {
  if (anomalies.length === 0) return 'no anomaly'
  const counts = Object.entries(Object.groupBy(anomalies, ({ kind }) => kind))
    .map(([kind, of]) => `${kind}: ${of.length}`)
    .join(', ')
  return [counts, ...anomalies.slice(0, shown).map(({ text }) => text)].join('\n')
}

/** A transaction of unknown outcome has committed where its write was read. */
function unknownButSeen(history: History, { lists, registers, appends, writes }: Observations) {
  const found = new Set<number>()
  const add = (by: number | undefined): void => {
    if (by !== undefined && history[by]!.outcome === 'unknown') found.add(by)
  }
  for (const { elements } of lists) {
    for (const element of elements) add(appends.get(element)?.by)
  }
  for (const { value } of registers) if (value !== null) add(writes.get(value)?.by)
  return found
}

/**
 * Whatever was answered before another was sent comes before it. Only the latest of those that
 * were answered get an edge: the others come before one of these. So there are at most as many
 * edges to a transaction as there are clients.
 */
function addRealTime(verdict: Verdict, graph: DependencyGraph, history: History): void {
  const events: { readonly at: number; readonly by: number; readonly isEnd: boolean }[] = []
  for (const [by, { invoked, completed }] of history.entries()) {
    if (!verdict.isCommitted(by)) continue
    events.push({ at: invoked, by, isEnd: false })
    if (completed !== Number.POSITIVE_INFINITY) events.push({ at: completed, by, isEnd: true })
  }
  events.sort((a, b) => a.at - b.at)
  let frontier: number[] = []
  for (const { by, isEnd } of events) {
    if (isEnd) {
      const { invoked } = history[by]!
      frontier = frontier.filter((other) => history[other]!.completed > invoked)
      frontier.push(by)
    } else {
      for (const other of frontier) graph.add(other, by, REAL_TIME, '')
    }
  }
}

function membersOf(cycle: readonly Edge[]): number[] {
  return cycle.map(({ from }) => from)
}

function nameOf(history: History, by: number): string {
  return `T${history[by]!.number}`
}
