/** Freezes what all calls share, so that the code of one leaves nothing there for the next. */
import { UNFROZEN } from './unfrozen.ts'

const { ownKeys, getOwnPropertyDescriptor, defineProperty, getPrototypeOf } = Reflect
const { freeze } = Object

/** An object may be assigned a name that it inherits from one of these: `error.name = "X"`. */
const OVERRIDABLE: readonly object[] = [
  Object.prototype,
  Function.prototype,
  ...[
    Error,
    AggregateError,
    EvalError,
    RangeError,
    ReferenceError,
    SuppressedError,
    SyntaxError,
    TypeError,
    URIError,
  ].map((kind) => kind.prototype as object),
]

/** Freezes the globals, what no global leads to, `roots`, and everything that these lead to. */
export function freezeShared(roots: readonly unknown[]): void {
  const segments = new Intl.Segmenter().segment('')
  const wrapped = Iterator.from({ next: () => ({ done: true, value: null }) })
  const hidden = [
    async () => {},
    function* () {},
    async function* () {},
    ''.matchAll(/a/g),
    ...[new Map(), new Set(), '', segments].map((one) => one[Symbol.iterator]()),
    segments,
    wrapped,
    wrapped.take(0),
  ]
  const shared = reachable([globalThis, ...UNFROZEN, ...hidden, ...roots])
  for (const owner of OVERRIDABLE) allowOverride(owner)
  for (const one of shared) if (!UNFROZEN.includes(one)) freeze(one)
}

function reachable(roots: unknown[]): Set<object> {
  const seen = new Set<object>()
  while (roots.length > 0) {
    const next = roots.pop()
    if ((typeof next !== 'object' && typeof next !== 'function') || next === null) continue
    if (seen.has(next) || ArrayBuffer.isView(next)) continue
    seen.add(next)
    roots.push(getPrototypeOf(next))
    for (const key of ownKeys(next)) {
      const { value, get, set } = getOwnPropertyDescriptor(next, key)!
      roots.push(value, get, set)
    }
  }
  return seen
}

function allowOverride(owner: object): void {
  for (const key of ownKeys(owner)) {
    const found = getOwnPropertyDescriptor(owner, key)!
    if (!('value' in found) || !found.configurable) continue
    const value: unknown = found.value
    const accessors = {
      get: () => value,
      set(this: object, next: unknown) {
        if (this === owner) throw new TypeError(`${String(key)} is shared by all calls`)
        const own = { value: next, writable: true, enumerable: true, configurable: true }
        // Through the watched function: `this` may be one of the unfrozen.
        Reflect.defineProperty(this, key, own)
      },
    }
    // Frozen here, since they are made when everything shared was reached.
    defineProperty(owner, key, {
      get: freeze(accessors.get),
      set: freeze(accessors.set),
      enumerable: found.enumerable ?? false,
      configurable: false,
    })
  }
}
