/** Dependencies between transactions, and the shortest cycles among them. */

/** Each kind is one bit, so that a set of kinds is a number. */
export const WW = 1
export const WR = 2
export const RW = 4
/** An anti-dependency of a range read on a row that it did not see. */
export const RW_PREDICATE = 8
/** The first transaction was completed before the other was sent. */
export const REAL_TIME = 16

const NAMES = new Map([
  [WW, 'ww'],
  [WR, 'wr'],
  [RW, 'rw'],
  [RW_PREDICATE, 'rw of a range'],
  [REAL_TIME, 'real time'],
])

export interface Edge {
  readonly from: number
  readonly to: number
  readonly kind: number
  /** The object that both accessed, such as `list 7`; empty for real time. */
  readonly object: string
}

/** Bound of the searches for the shortest cycle of a component: there may be millions of cycles. */
const SEARCHES_MAX = 1_000

export class DependencyGraph {
  readonly #size: number
  readonly #from: number[] = []
  readonly #to: number[] = []
  readonly #kinds: number[] = []
  readonly #objects: string[] = []
  /** Edge numbers ordered by their source; null until they are sorted. */
  #ordered: Int32Array | null = null
  #starts = new Int32Array(0)

  constructor(size: number) {
    this.#size = size
  }

  get edgeCount(): number {
    return this.#from.length
  }

  /** Adds an edge. An edge from a transaction to itself has no meaning and is ignored. */
  add(from: number, to: number, kind: number, object: string): void {
    if (from === to) return
    this.#from.push(from)
    this.#to.push(to)
    this.#kinds.push(kind)
    this.#objects.push(object)
    this.#ordered = null
  }

  /** Returns sets of two or more transactions that reach each other by edges of these kinds. */
  components(kinds: number): number[][] {
    this.#order()
    return new ComponentSearch(this.#size, (node) => this.#successors(node, kinds)).run()
  }

  /**
   * Returns the shortest cycle of the component that begins with an edge of `first` and continues
   * with edges of `rest`; null if there is none among the first thousand candidates.
   */
  shortestCycle(component: readonly number[], first: number, rest: number): Edge[] | null {
    this.#order()
    const members = new Set(component)
    let best: Edge[] | null = null
    let searches = 0
    for (const node of component) {
      for (const number of this.#edges(node, first)) {
        const next = this.#to[number]!
        if (!members.has(next)) continue
        if (++searches > SEARCHES_MAX || best?.length === 2) return best
        const lengthMax = best === null ? Number.POSITIVE_INFINITY : best.length - 2
        const path = this.#shortestPath({ from: next, to: node, kinds: rest, members, lengthMax })
        if (path !== null) best = [number, ...path].map((each) => this.#edge(each))
      }
    }
    return best
  }

  #shortestPath(search: {
    from: number
    to: number
    kinds: number
    members: ReadonlySet<number>
    lengthMax: number
  }): number[] | null {
    const { from, to, kinds, members, lengthMax } = search
    /** The edge by which each node was reached. */
    const reachedBy = new Map<number, number>([[from, -1]])
    let ring = [from]
    for (let length = 1; ring.length > 0 && length <= lengthMax; length++) {
      const next: number[] = []
      for (const node of ring) {
        for (const number of this.#edges(node, kinds)) {
          const target = this.#to[number]!
          if (!members.has(target) || reachedBy.has(target)) continue
          reachedBy.set(target, number)
          if (target === to) return this.#backwards(reachedBy, to)
          next.push(target)
        }
      }
      ring = next
    }
    return null
  }

  #backwards(reachedBy: ReadonlyMap<number, number>, to: number): number[] {
    const path: number[] = []
    for (let at = reachedBy.get(to)!; at !== -1; at = reachedBy.get(this.#from[at]!)!) {
      path.unshift(at)
    }
    return path
  }

  #edge(number: number): Edge {
    return {
      from: this.#from[number]!,
      to: this.#to[number]!,
      kind: this.#kinds[number]!,
      object: this.#objects[number]!,
    }
  }

  *#edges(node: number, kinds: number): Generator<number> {
    for (let i = this.#starts[node]!; i < this.#starts[node + 1]!; i++) {
      const number = this.#ordered![i]!
      if ((this.#kinds[number]! & kinds) !== 0) yield number
    }
  }

  #successors(node: number, kinds: number): number[] {
    const found: number[] = []
    for (let i = this.#starts[node]!; i < this.#starts[node + 1]!; i++) {
      const number = this.#ordered![i]!
      if ((this.#kinds[number]! & kinds) !== 0) found.push(this.#to[number]!)
    }
    return found
  }

  #order(): void {
    if (this.#ordered !== null) return
    const starts = new Int32Array(this.#size + 2)
    for (const from of this.#from) starts[from + 2]! += 1
    for (let i = 2; i < starts.length; i++) starts[i]! += starts[i - 1]!
    this.#ordered = new Int32Array(this.#from.length)
    for (const [number, from] of this.#from.entries()) {
      this.#ordered[starts[from + 1]!++] = number
    }
    this.#starts = starts
  }
}

export function describeCycle(cycle: readonly Edge[], name: (node: number) => string): string {
  const steps = cycle.map(({ from, kind, object }) => {
    const on = object === '' ? '' : ` on ${object}`
    return `${name(from)} -(${NAMES.get(kind)}${on})->`
  })
  return `${steps.join(' ')} ${name(cycle[0]!.from)}`
}

interface Visit {
  readonly node: number
  readonly successors: readonly number[]
  at: number
}

/** Finds strongly connected components with Tarjan's algorithm, without recursion. */
class ComponentSearch {
  readonly #successorsOf: (node: number) => number[]
  readonly #index: Int32Array
  readonly #low: Int32Array
  readonly #onStack: Uint8Array
  readonly #stack: number[] = []
  readonly #visits: Visit[] = []
  readonly #found: number[][] = []
  #next = 1

  constructor(size: number, successorsOf: (node: number) => number[]) {
    this.#successorsOf = successorsOf
    this.#index = new Int32Array(size)
    this.#low = new Int32Array(size)
    this.#onStack = new Uint8Array(size)
  }

  run(): number[][] {
    for (let root = 0; root < this.#index.length; root++) {
      if (this.#index[root] !== 0) continue
      this.#enter(root)
      while (this.#visits.length > 0) this.#step(this.#visits.at(-1)!)
    }
    return this.#found
  }

  #enter(node: number): void {
    this.#index[node] = this.#low[node] = this.#next++
    this.#stack.push(node)
    this.#onStack[node] = 1
    this.#visits.push({ node, successors: this.#successorsOf(node), at: 0 })
  }

  #step(visit: Visit): void {
    const { node, successors } = visit
    const successor = successors[visit.at++]
    if (successor === undefined) {
      this.#leave(node)
    } else if (this.#index[successor] === 0) {
      this.#enter(successor)
    } else if (this.#onStack[successor] === 1) {
      this.#low[node] = Math.min(this.#low[node]!, this.#index[successor]!)
    }
  }

  #leave(node: number): void {
    this.#visits.pop()
    const parent = this.#visits.at(-1)
    if (parent !== undefined) {
      this.#low[parent.node] = Math.min(this.#low[parent.node]!, this.#low[node]!)
    }
    if (this.#low[node] !== this.#index[node]) return
    const component = this.#stack.splice(this.#stack.lastIndexOf(node))
    for (const member of component) this.#onStack[member] = 0
    if (component.length > 1) this.#found.push(component)
  }
}
