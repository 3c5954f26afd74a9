/** URLSearchParams of a Workspace's realm, in three parts: the form, what reads, what changes. */
import type { Bridge } from './bridge.ts'

export type Pair = [name: string, value: string]

/** application/x-www-form-urlencoded. */
export function makeForm({ utf8Length, utf8Write, utf8Read }: Bridge) {
  const plain = /^[A-Za-z0-9*\-._ ]*$/
  const hexPair = /^[0-9A-Fa-f]{2}$/

  function bytesOf(text: string): Uint8Array {
    const bytes = new Uint8Array(utf8Length(text))
    utf8Write(text, bytes)
    return bytes
  }

  function escaped(text: string): string {
    if (plain.test(text)) return text.replaceAll(' ', '+')
    let out = ''
    for (const byte of bytesOf(text)) {
      const char = String.fromCharCode(byte)
      if (char === ' ') out += '+'
      else if (plain.test(char)) out += char
      else out += `%${byte < 16 ? '0' : ''}${byte.toString(16).toUpperCase()}`
    }
    return out
  }

  function unescaped(text: string): string {
    if (!text.includes('%') && !text.includes('+')) return text
    const source = bytesOf(text)
    const bytes: number[] = []
    for (let i = 0; i < source.length; i++) {
      const hex = String.fromCharCode(source[i + 1] ?? 0, source[i + 2] ?? 0)
      if (source[i] === 0x25 && hexPair.test(hex)) {
        bytes.push(Number.parseInt(hex, 16))
        i += 2
      } else bytes.push(source[i] === 0x2b ? 0x20 : source[i]!)
    }
    return utf8Read(Uint8Array.from(bytes), false, true) ?? ''
  }

  function parse(text: string): Pair[] {
    const pairs: Pair[] = []
    for (const piece of (text[0] === '?' ? text.slice(1) : text).split('&')) {
      if (piece === '') continue
      const at = piece.indexOf('=')
      const name = at === -1 ? piece : piece.slice(0, at)
      pairs.push([unescaped(name), at === -1 ? '' : unescaped(piece.slice(at + 1))])
    }
    return pairs
  }

  function serialize(pairs: readonly Pair[]): string {
    return pairs.map(([name, value]) => `${escaped(name)}=${escaped(value)}`).join('&')
  }

  function pairsOf(init: unknown): Pair[] {
    if (init === undefined || init === null) return []
    if (typeof init !== 'object') return parse(`${init}`)
    const entries =
      Symbol.iterator in init ? [...(init as Iterable<Iterable<unknown>>)] : Object.entries(init)
    return entries.map((entry): Pair => {
      const [name, value, ...rest] = entry as Iterable<unknown>
      if (rest.length > 0) throw new TypeError('URLSearchParams: each entry is a name and a value')
      return [`${name}`, `${value}`]
    })
  }

  return { parse, serialize, pairsOf }
}

/** `state` holds the pairs of each instance, and whom to tell of a change. */
export function makePairsReader(
  state: WeakMap<object, { pairs: Pair[]; changed: (() => void) | null }>,
  serialize: (pairs: readonly Pair[]) => string,
) {
  return class PairsReader {
    get size(): number {
      return state.get(this)!.pairs.length
    }
    get(name: string): string | null {
      return state.get(this)!.pairs.find(([key]) => key === `${name}`)?.[1] ?? null
    }
    getAll(name: string): string[] {
      return state
        .get(this)!
        .pairs.filter(([key]) => key === `${name}`)
        .map(([, held]) => held)
    }
    has(name: string, value?: string): boolean {
      return this.getAll(name).some((held) => value === undefined || held === `${value}`)
    }
    forEach(visit: (value: string, name: string, all: PairsReader) => void): void {
      for (const [name, value] of state.get(this)!.pairs) visit(value, name, this)
    }
    entries(): IterableIterator<Pair> {
      return state
        .get(this)!
        .pairs.map(([name, value]): Pair => [name, value])
        [Symbol.iterator]()
    }
    keys(): IterableIterator<string> {
      return state
        .get(this)!
        .pairs.map(([name]) => name)
        [Symbol.iterator]()
    }
    values(): IterableIterator<string> {
      return state
        .get(this)!
        .pairs.map(([, value]) => value)
        [Symbol.iterator]()
    }
    [Symbol.iterator](): IterableIterator<Pair> {
      return this.entries()
    }
    toString(): string {
      return serialize(state.get(this)!.pairs)
    }
  }
}

export function makeSearchParams(
  state: WeakMap<object, { pairs: Pair[]; changed: (() => void) | null }>,
  Reader: ReturnType<typeof makePairsReader>,
  pairsOf: (init: unknown) => Pair[],
) {
  function change(params: object, next: (pairs: Pair[]) => Pair[]): void {
    const held = state.get(params)!
    held.pairs = next(held.pairs)
    held.changed?.()
  }

  return class URLSearchParams extends Reader {
    constructor(init?: unknown) {
      super()
      state.set(this, { pairs: pairsOf(init), changed: null })
    }
    append(name: string, value: string): void {
      change(this, (pairs) => [...pairs, [`${name}`, `${value}`]])
    }
    delete(name: string, value?: string): void {
      change(this, (pairs) =>
        pairs.filter(
          ([key, held]) => key !== `${name}` || (value !== undefined && held !== `${value}`),
        ),
      )
    }
    set(name: string, value: string): void {
      change(this, (pairs) => {
        const first = pairs.findIndex(([key]) => key === `${name}`)
        if (first === -1) return [...pairs, [`${name}`, `${value}`]]
        const kept = pairs.filter(([key], i) => key !== `${name}` || i === first)
        kept[first] = [`${name}`, `${value}`]
        return kept
      })
    }
    sort(): void {
      change(this, (pairs) => pairs.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
    }
  }
}
