/**
 * Infers the order of appends to each list. A read contains a prefix of the final list, so the
 * longest read gives the order, and every other read has a position in it.
 */
import { type DependencyGraph, RW, WR, WW } from './graph.ts'
import type { ListRead, Write } from './observations.ts'
import type { Verdict } from './verdicts.ts'

export function orderLists(
  verdict: Verdict,
  graph: DependencyGraph,
  reads: readonly ListRead[],
  appends: ReadonlyMap<number, Write>,
): void {
  const readsByKey = Map.groupBy(reads, ({ key }) => key)
  const appendsByKey = Map.groupBy(appends.values(), ({ key }) => key)
  for (const key of new Set([...readsByKey.keys(), ...appendsByKey.keys()])) {
    new ListOrder(verdict, graph, key, appends).run(
      readsByKey.get(key) ?? [],
      appendsByKey.get(key) ?? [],
    )
  }
}

class ListOrder {
  readonly #verdict: Verdict
  readonly #graph: DependencyGraph
  readonly #key: number
  readonly #appends: ReadonlyMap<number, Write>
  readonly #object: string

  constructor(
    verdict: Verdict,
    graph: DependencyGraph,
    key: number,
    appends: ReadonlyMap<number, Write>,
  ) {
    this.#verdict = verdict
    this.#graph = graph
    this.#key = key
    this.#appends = appends
    this.#object = `list ${key}`
  }

  run(reads: readonly ListRead[], appends: readonly Write[]): void {
    let longest: ListRead | null = null
    for (const read of reads) {
      if (longest === null || read.elements.length > longest.elements.length) longest = read
    }
    const order = longest?.elements ?? []
    const writers = order.map((element) => this.#writerOf(element))
    for (let i = 1; i < writers.length; i++) this.#edge(writers[i - 1], writers[i], WW)
    const shown = new Set(order)
    const unread = appends.filter(({ by, value }) => this.#isCommitted(by) && !shown.has(value))
    for (const { by } of unread) this.#edge(writers.at(-1), by, WW)
    if (shown.size < order.length && longest !== null) this.#reportDuplicate(longest)
    for (const read of reads) this.#addRead(read, order, writers, unread)
    this.#reportLost(reads, unread)
  }

  #addRead(
    read: ListRead,
    order: readonly number[],
    writers: readonly (number | null)[],
    unread: readonly Write[],
  ): void {
    const { by, elements } = read
    for (const element of elements) this.#checkRead(by, element, element === elements.at(-1))
    const differs = elements.findIndex((element, i) => element !== order[i])
    if (differs !== -1) {
      const text = `list ${this.#key} was [${elements.join(', ')}] and [${order.join(', ')}]`
      this.#verdict.report('incompatible orders', [by], text)
      return
    }
    const seen = elements.length
    if (seen > 0) this.#edge(writers[seen - 1], by, WR)
    if (seen < order.length) this.#edge(by, writers[seen], RW)
    else for (const append of unread) this.#edge(by, append.by, RW)
  }

  #checkRead(by: number, element: number, isLast: boolean): void {
    const write = this.#appends.get(element)
    if (write === undefined || write.key !== this.#key) {
      this.#verdict.report('unwritten', [by], `list ${this.#key} had ${element}`)
    } else if (this.#verdict.isAborted(write.by)) {
      this.#verdict.report('G1a', [by, write.by], `list ${this.#key} had ${element}`)
    } else if (isLast && !write.isLast && write.by !== by) {
      const text = `list ${this.#key} ended with ${element}`
      this.#verdict.report('G1b', [by, write.by], text)
    }
  }

  #reportDuplicate({ by, elements }: ListRead): void {
    const twice = elements.find((element, i) => elements.indexOf(element) < i)
    this.#verdict.report('duplicate append', [by], `list ${this.#key} had ${twice} more than once`)
  }

  /** Reports appends that completed before a read was sent, and that no read contains. */
  #reportLost(reads: readonly ListRead[], unread: readonly Write[]): void {
    let latest: ListRead | null = null
    for (const read of reads) {
      if (latest === null || this.#verdict.invoked(read.by) > this.#verdict.invoked(latest.by)) {
        latest = read
      }
    }
    if (latest === null) return
    for (const { by, value } of unread) {
      if (this.#verdict.completed(by) > this.#verdict.invoked(latest.by)) continue
      const text = `list ${this.#key} never showed ${value}`
      this.#verdict.report('lost append', [by, latest.by], text)
    }
  }

  /** Returns null if no transaction wrote the element, or an aborted one did. */
  #writerOf(element: number): number | null {
    const by = this.#appends.get(element)?.by
    return by === undefined || !this.#isCommitted(by) ? null : by
  }

  #isCommitted(by: number): boolean {
    return this.#verdict.isCommitted(by)
  }

  #edge(from: number | null | undefined, to: number | null | undefined, kind: number): void {
    if (from === null || from === undefined || to === null || to === undefined) return
    this.#graph.add(from, to, kind, this.#object)
  }
}
