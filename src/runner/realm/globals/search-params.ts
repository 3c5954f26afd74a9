/** `URLSearchParams`, and application/x-www-form-urlencoded, the form that it reads and writes. */
import { bridge } from '../bridge.ts'

export type Pair = [name: string, value: string]

interface Content {
  pairs: Pair[]
  /** Called when the code changes the pairs; null unless they belong to a URL. */
  onChange: (() => void) | null
}

const contents = new WeakMap<object, Content>()
const PLAIN = /^[A-Za-z0-9*\-._ ]*$/
const HEX_PAIR = /^[0-9A-Fa-f]{2}$/

function bytesOf(text: string): Uint8Array {
  const bytes = new Uint8Array(bridge.utf8Length(text))
  bridge.utf8Write(text, bytes)
  return bytes
}

function escapeText(text: string): string {
  if (PLAIN.test(text)) return text.replaceAll(' ', '+')
  let out = ''
  for (const byte of bytesOf(text)) {
    const char = String.fromCharCode(byte)
    if (char === ' ') out += '+'
    else if (PLAIN.test(char)) out += char
    else out += `%${byte < 16 ? '0' : ''}${byte.toString(16).toUpperCase()}`
  }
  return out
}

function unescapeText(text: string): string {
  if (!text.includes('%') && !text.includes('+')) return text
  const source = bytesOf(text)
  const bytes: number[] = []
  for (let i = 0; i < source.length; i++) {
    const hex = String.fromCharCode(source[i + 1] ?? 0, source[i + 2] ?? 0)
    if (source[i] === 0x25 && HEX_PAIR.test(hex)) {
      bytes.push(Number.parseInt(hex, 16))
      i += 2
    } else bytes.push(source[i] === 0x2b ? 0x20 : source[i]!)
  }
  return bridge.utf8Read(Uint8Array.from(bytes), false, true) ?? ''
}

function parsePairs(text: string): Pair[] {
  const pairs: Pair[] = []
  for (const piece of (text[0] === '?' ? text.slice(1) : text).split('&')) {
    if (piece === '') continue
    const at = piece.indexOf('=')
    const name = at === -1 ? piece : piece.slice(0, at)
    pairs.push([unescapeText(name), at === -1 ? '' : unescapeText(piece.slice(at + 1))])
  }
  return pairs
}

function pairsOf(init: unknown): Pair[] {
  if (init === undefined || init === null) return []
  if (typeof init !== 'object') return parsePairs(`${init}`)
  const entries =
    Symbol.iterator in init ? [...(init as Iterable<Iterable<unknown>>)] : Object.entries(init)
  return entries.map((entry): Pair => {
    const [name, value, ...rest] = entry as Iterable<unknown>
    if (rest.length > 0) throw new TypeError('URLSearchParams: each entry is a name and a value')
    return [`${name}`, `${value}`]
  })
}

/** Calls `onChange` whenever the code changes `params`. */
export function observeSearchParams(params: URLSearchParams, onChange: () => void): void {
  contents.get(params)!.onChange = onChange
}

/** Replaces the pairs by those of `search`, without a call of the observer. */
export function resetSearchParams(params: URLSearchParams, search: string): void {
  contents.get(params)!.pairs = parsePairs(search)
}

/** The methods that change nothing. */
class PairsReader {
  get size(): number {
    return contents.get(this)!.pairs.length
  }
  get(name: string): string | null {
    return contents.get(this)!.pairs.find(([key]) => key === `${name}`)?.[1] ?? null
  }
  getAll(name: string): string[] {
    return contents
      .get(this)!
      .pairs.filter(([key]) => key === `${name}`)
      .map(([, value]) => value)
  }
  has(name: string, value?: string): boolean {
    return this.getAll(name).some((found) => value === undefined || found === `${value}`)
  }
  forEach(visit: (value: string, name: string, all: PairsReader) => void): void {
    for (const [name, value] of contents.get(this)!.pairs) visit(value, name, this)
  }
  entries(): IterableIterator<Pair> {
    return contents
      .get(this)!
      .pairs.map(([name, value]): Pair => [name, value])
      [Symbol.iterator]()
  }
  keys(): IterableIterator<string> {
    return contents
      .get(this)!
      .pairs.map(([name]) => name)
      [Symbol.iterator]()
  }
  values(): IterableIterator<string> {
    return contents
      .get(this)!
      .pairs.map(([, value]) => value)
      [Symbol.iterator]()
  }
  [Symbol.iterator](): IterableIterator<Pair> {
    return this.entries()
  }
  toString(): string {
    return contents
      .get(this)!
      .pairs.map(([name, value]) => `${escapeText(name)}=${escapeText(value)}`)
      .join('&')
  }
}

function changePairs(params: object, change: (pairs: Pair[]) => Pair[]): void {
  const content = contents.get(params)!
  content.pairs = change(content.pairs)
  content.onChange?.()
}

export class URLSearchParams extends PairsReader {
  constructor(init?: unknown) {
    super()
    contents.set(this, { pairs: pairsOf(init), onChange: null })
  }
  append(name: string, value: string): void {
    changePairs(this, (pairs) => [...pairs, [`${name}`, `${value}`]])
  }
  delete(name: string, value?: string): void {
    changePairs(this, (pairs) =>
      pairs.filter(
        ([key, found]) => key !== `${name}` || (value !== undefined && found !== `${value}`),
      ),
    )
  }
  set(name: string, value: string): void {
    changePairs(this, (pairs) => {
      const first = pairs.findIndex(([key]) => key === `${name}`)
      if (first === -1) return [...pairs, [`${name}`, `${value}`]]
      const kept = pairs.filter(([key], i) => key !== `${name}` || i === first)
      kept[first] = [`${name}`, `${value}`]
      return kept
    })
  }
  sort(): void {
    changePairs(this, (pairs) => pairs.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
  }
}
