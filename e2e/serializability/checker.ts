/**
 * Checks that a history is strictly serializable. Reads imply orders of versions, the orders imply
 * dependencies, and every cycle of dependencies is an anomaly (Adya's thesis; Kingsbury and Alvaro,
 * "Elle", VLDB 2020). The checker ignores commit sequences, which the oracle checks.
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

/** Strongest class first. The first edge of a cycle determines its class. */
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
      // A component with a stronger cycle has been reported.
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

/** Returns the number of anomalies of each kind, and the first of them in full. */
export function summarize(anomalies: readonly Anomaly[], shown = 10): string {
  if (anomalies.length === 0) return 'no anomaly'
  const counts = Object.entries(Object.groupBy(anomalies, ({ kind }) => kind))
    .map(([kind, of]) => `${kind}: ${of.length}`)
    .join(', ')
  return [counts, ...anomalies.slice(0, shown).map(({ text }) => text)].join('\n')
}

/** Returns transactions of unknown outcome that have committed, since their writes were read. */
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
 * Adds edges from completed transactions to those that were sent later. Only the latest completed
 * ones get an edge, since the others precede one of these. A transaction therefore has at most as
 * many such edges as there are clients.
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
