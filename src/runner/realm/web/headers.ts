/** Headers: names in lower case, values as they are sent. */

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const FORBIDDEN = /[^\t\x20-\x7e\x80-\xff]/

function nameText(name: unknown): string {
  const text = `${name}`
  if (TOKEN.test(text)) return text.toLowerCase()
  throw new TypeError(`"${text.slice(0, 100)}" is no name of a header`)
}

function valueText(name: string, value: unknown): string {
  const text = `${value}`.replace(/^[\t\r\n ]+|[\t\r\n ]+$/g, '')
  if (!FORBIDDEN.test(text)) return text
  throw new TypeError(`the header ${name} has a character that no header may have`)
}

/** The values of headers; each name may have several. */
class HeaderValues {
  readonly #values = new Map<string, string[]>()

  append(name: unknown, value: unknown): void {
    const key = nameText(name)
    const values = this.#values.get(key) ?? []
    this.#values.set(key, [...values, valueText(key, value)])
  }

  set(name: unknown, value: unknown): void {
    const key = nameText(name)
    this.#values.set(key, [valueText(key, value)])
  }

  delete(name: unknown): void {
    this.#values.delete(nameText(name))
  }

  has(name: unknown): boolean {
    return this.#values.has(nameText(name))
  }

  get(name: unknown): string | null {
    return this.#values.get(nameText(name))?.join(', ') ?? null
  }

  getSetCookie(): string[] {
    return [...(this.#values.get('set-cookie') ?? [])]
  }

  /** Iterates in the order of names; cookies come one by one, as they cannot be joined. */
  *entries(): Generator<[string, string]> {
    for (const [name, values] of [...this.#values].sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (name === 'set-cookie') for (const value of values) yield [name, value]
      else yield [name, values.join(', ')]
    }
  }
}

export class Headers extends HeaderValues {
  constructor(init?: unknown) {
    super()
    if (init === undefined || init === null) return
    if (typeof init !== 'object') throw new TypeError('Headers: give it an object or pairs')
    const pairs = Symbol.iterator in init ? (init as Iterable<unknown>) : Object.entries(init)
    for (const pair of pairs) {
      const [name, value, ...more] = [...(pair as Iterable<unknown>)]
      if (value === undefined || more.length > 0) {
        throw new TypeError('Headers: each pair is a name and a value')
      }
      this.append(name, value)
    }
  }

  *keys(): Generator<string> {
    for (const [name] of this.entries()) yield name
  }

  *values(): Generator<string> {
    for (const [, value] of this.entries()) yield value
  }

  [Symbol.iterator](): Generator<[string, string]> {
    return this.entries()
  }

  forEach(visit: (value: string, name: string, headers: unknown) => void): void {
    for (const [name, value] of this.entries()) visit(value, name, this)
  }
}
