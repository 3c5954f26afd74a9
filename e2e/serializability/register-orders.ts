/**
 * Infers the order of the values of each register: a transaction that read a value and wrote
 * another puts the two in sequence. A range without a register read a value of it outside of the
 * range.
 */
import { type DependencyGraph, RW, RW_PREDICATE, WR, WW } from './graph.ts'
import { spaceOf } from './history.ts'
import type { Observations, RangeRead, RegisterRead, Write } from './observations.ts'
import type { Verdict } from './verdicts.ts'

interface Register {
  readonly key: number
  /** Writes by the value that they replaced; null stands for no register. */
  readonly next: Map<number | null, Write>
  /** All writes in their order; null if the position of one is unknown. */
  readonly chain: readonly Write[] | null
}

export function orderRegisters(
  verdict: Verdict,
  graph: DependencyGraph,
  { registers: reads, ranges, writes }: Observations,
): void {
  const committed = [...writes.values()].filter(({ by }) => verdict.isCommitted(by))
  const registers = new Map<number, Register>()
  for (const [key, own] of Map.groupBy(committed, (write) => write.key)) {
    const register = orderOne(verdict, key, own)
    registers.set(key, register)
    for (const write of own) {
      const before = typeof write.before === 'number' ? writes.get(write.before) : undefined
      if (before === undefined || !verdict.isCommitted(before.by)) continue
      graph.add(before.by, write.by, WW, `register ${key}`)
    }
  }
  for (const read of reads) addRead(verdict, graph, read, writes, registers.get(read.key))
  const bySpace = Map.groupBy(registers.values(), ({ key }) => spaceOf(key))
  for (const range of ranges) addRangeRead(graph, range, bySpace.get(range.space) ?? [])
}

function orderOne(verdict: Verdict, key: number, own: readonly Write[]): Register {
  const next = new Map<number | null, Write>()
  for (const write of own) {
    if (write.before === undefined) continue
    const other = next.get(write.before)
    if (other === undefined) {
      next.set(write.before, write)
      continue
    }
    const what = write.before === null ? `register ${key}` : `${write.before} in register ${key}`
    const text = `lost update: both replaced ${write.before === null ? 'no value of ' : ''}${what}`
    verdict.report('G-single', [other.by, write.by], text)
  }
  const chain: Write[] = []
  for (let at = next.get(null); at !== undefined && chain.length < own.length; ) {
    chain.push(at)
    at = next.get(at.value)
  }
  return { key, next, chain: chain.length === own.length ? chain : null }
}

function addRead(
  verdict: Verdict,
  graph: DependencyGraph,
  { by, key, value }: RegisterRead,
  writes: ReadonlyMap<number, Write>,
  register: Register | undefined,
): void {
  const object = `register ${key}`
  if (value !== null) {
    const write = writes.get(value)
    if (write === undefined || write.key !== key) {
      verdict.report('unwritten', [by], `register ${key} was ${value}`)
      return
    }
    if (verdict.isAborted(write.by)) {
      verdict.report('G1a', [by, write.by], `register ${key} was ${value}`)
      return
    }
    if (!write.isLast && write.by !== by) {
      verdict.report('G1b', [by, write.by], `register ${key} was ${value}`)
    }
    graph.add(write.by, by, WR, object)
  }
  const next = register?.next.get(value)
  if (next !== undefined) graph.add(by, next.by, RW, object)
}

/**
 * A register that is absent from a range had a value outside of it, or did not exist yet. The write
 * that moved it into the range for the last time came after the read.
 */
function addRangeRead(
  graph: DependencyGraph,
  { by, from, to, known }: RangeRead,
  registers: readonly Register[],
): void {
  for (const { key, chain } of registers) {
    if (chain === null || known.has(key)) continue
    const isInside = (write: Write) => write.value >= from && write.value < to
    const lastOutside = chain.findLastIndex((write) => !isInside(write))
    const entering = chain[lastOutside + 1]
    if (entering !== undefined) graph.add(by, entering.by, RW_PREDICATE, `register ${key}`)
  }
}
