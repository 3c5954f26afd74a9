/** The globals that a Workspace's code finds: what is not deterministic is replaced or absent. */
import type { makeDate } from './clock.ts'
import type { makeRandom } from './random.ts'

/** Replaces and removes globals; before any code of a Workspace runs. */
export function makeEnvironment(
  date: ReturnType<typeof makeDate>,
  random: ReturnType<typeof makeRandom>,
  additions: Readonly<Record<string, unknown>>,
): void {
  const hidden = { writable: true, enumerable: false, configurable: true }
  const absent = [
    'Atomics',
    'FinalizationRegistry',
    'ShadowRealm',
    'SharedArrayBuffer',
    'WeakRef',
    'WebAssembly',
  ]
  for (const name of absent) Reflect.deleteProperty(globalThis, name)
  // What the last match of any call left, such as `RegExp.$1`.
  for (const [name, { get }] of Object.entries(Object.getOwnPropertyDescriptors(RegExp))) {
    if (get !== undefined) Reflect.deleteProperty(RegExp, name)
  }
  for (const [name, value] of Object.entries({ ...additions, Date: date, crypto: random.crypto })) {
    Object.defineProperty(globalThis, name, { value, ...hidden })
  }
  Object.defineProperty(globalThis, 'queueMicrotask', {
    value: (task: () => unknown): void => {
      Promise.resolve().then(task)
    },
    ...hidden,
  })
  Math.random = random.random
  // The frames of this realm stand above the author's: those of the encoder three times for each
  // level of a value. The runtime's 10 would hide what called it.
  Error.stackTraceLimit = 100
  // The engine calls this hook with frames of the outer realm.
  Object.defineProperty(Error, 'prepareStackTrace', { value: undefined, writable: false })
}

/**
 * Freezes what all calls share, after the code has loaded. What `open` lists stays as it is, since
 * spreading and `map` are three times slower with frozen array prototypes; makeGuard watches them.
 */
export function makeFreeze(open: readonly object[]): (roots: readonly unknown[]) => void {
  const { ownKeys, getOwnPropertyDescriptor, defineProperty, getPrototypeOf } = Reflect
  /** Assigning to an inherited name must work on an object of one's own: `error.name = "X"`. */
  const overridable: readonly object[] = [
    Object.prototype,
    Function.prototype,
    ...[
      ...[Error, AggregateError, EvalError, RangeError, ReferenceError, SuppressedError],
      ...[SyntaxError, TypeError, URIError],
    ].map((kind) => kind.prototype as object),
  ]

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
          defineProperty(this, key, own)
        },
      }
      const rest = { enumerable: found.enumerable ?? false, configurable: false }
      // Shared as well, and made after all that is shared was reached.
      defineProperty(owner, key, {
        get: Object.freeze(accessors.get),
        set: Object.freeze(accessors.set),
        ...rest,
      })
    }
  }

  function reach(roots: unknown[]): Set<object> {
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

  return (roots) => {
    // Reached through no global.
    const segments = new Intl.Segmenter().segment('')
    const wrapped = Iterator.from({ next: () => ({ done: true, value: null }) })
    const hidden = [
      async () => {},
      function* () {},
      async function* () {},
      ''.matchAll(/a/g),
      ...[new Map(), new Set(), '', segments].map((one) => one[Symbol.iterator]()),
      ...[segments, wrapped, wrapped.take(0)],
    ]
    const shared = reach([globalThis, ...open, ...hidden, ...roots])
    for (const owner of overridable) allowOverride(owner)
    for (const one of shared) if (!open.includes(one)) Object.freeze(one)
  }
}

/**
 * Wraps the functions that can add a property which `Object.keys` does not list. Answers whether
 * any of them was called since the last question.
 */
export function makeDefinitions(): () => boolean {
  const { apply, defineProperty } = Reflect
  let called = false

  function watch<Name extends string>(
    owner: Record<Name, (...args: never) => unknown>,
    name: Name,
  ): void {
    const own = owner[name]
    const { [name as string]: wrapper } = {
      [name](this: unknown, ...args: unknown[]): unknown {
        called = true
        return apply(own, this, args)
      },
    }
    defineProperty(wrapper!, 'length', { value: own.length })
    defineProperty(owner, name, { value: wrapper })
  }

  watch(Object, 'defineProperty')
  watch(Object, 'defineProperties')
  watch(Reflect, 'defineProperty')
  return () => {
    const was = called
    called = false
    return was
  }
}

/** Properties that the engine gives an object; names in the source are reached much faster. */
export interface EngineNames {
  readonly count: number
  /** Answers whether all of them are what they are now. */
  keep(one: object): () => boolean
}

/** An object that is not frozen, as it was when the code had loaded. */
type Open = Record<string | symbol, unknown>
interface Kept {
  readonly one: Open
  readonly prototype: object | null
  readonly keys: readonly (string | symbol)[]
  readonly descriptors: readonly PropertyDescriptor[]
  readonly isSame: () => boolean
  /** How many of its properties are enumerable. */
  readonly listed: number
  readonly stack: unknown
  /** The code of the Workspace may add to it while it loads. */
  readonly isPlain: boolean
}

/**
 * Tells changes of what is kept, and undoes them. Nothing of a call runs, nothing iterates and no
 * method of an array is used: one may be what was changed, for good.
 */
export function makeKeeping(defined: ReturnType<typeof makeDefinitions>) {
  const { ownKeys, deleteProperty, getOwnPropertyDescriptor, defineProperty } = Reflect
  const { getPrototypeOf, setPrototypeOf, isExtensible } = Reflect
  const { keys: enumerable } = Object

  /**
   * All that can change without a definition; Error.captureStackTrace adds a hidden `stack`. An
   * accessor that nothing defined is enumerable, so in this order none runs.
   */
  function isUntouched({ one, prototype, isPlain, isSame, listed, stack }: Kept): boolean {
    if (!isPlain || getPrototypeOf(one) !== prototype) return false
    if (enumerable(one).length !== listed || !isExtensible(one)) return false
    return isSame() && one.stack === stack
  }

  function isOwn(own: PropertyDescriptor, now: PropertyDescriptor | undefined): boolean {
    if (now?.enumerable !== own.enumerable || now?.configurable !== own.configurable) return false
    const { value, writable, get, set } = own
    return (
      now?.value === value && now?.writable === writable && now?.get === get && now?.set === set
    )
  }

  function has(keys: Kept['keys'], key: string | symbol): boolean {
    for (let i = 0; i < keys.length; i++) if (keys[i] === key) return true
    return false
  }

  return {
    keep(one: object, { count, keep }: EngineNames): Kept {
      const keys = ownKeys(one)
      const descriptors = keys.map((key) => getOwnPropertyDescriptor(one, key)!)
      const { stack } = one as { stack?: unknown }
      const [prototype, listed] = [getPrototypeOf(one), enumerable(one).length]
      const known = { prototype, listed, stack, isSame: keep(one), isPlain: keys.length === count }
      return { one: one as Open, keys, descriptors, ...known }
    },

    wasDefined: defined,
    isUntouched,

    firstChange({ one, prototype, keys, descriptors }: Kept): string | null {
      if (getPrototypeOf(one) !== prototype) return '__proto__'
      for (let i = 0; i < keys.length; i++) {
        const key = keys[i]!
        if (!isOwn(descriptors[i]!, getOwnPropertyDescriptor(one, key))) return String(key)
      }
      const now = ownKeys(one)
      for (let i = 0; i < now.length; i++) if (!has(keys, now[i]!)) return String(now[i])
      return isExtensible(one) ? null : 'a property'
    },

    /** First the methods and the iterator that all else works with. */
    restore({ one, prototype, keys, descriptors }: Kept): void {
      setPrototypeOf(one, prototype)
      for (let i = 0; i < keys.length; i++) defineProperty(one, keys[i]!, descriptors[i]!)
      const now = ownKeys(one)
      for (let i = 0; i < now.length; i++) {
        if (!has(keys, now[i]!)) deleteProperty(one, now[i]!)
      }
    },
  }
}

/**
 * Remembers what cannot be frozen; answers what puts it back and names the first change. That
 * throws where a call made it so that nothing puts it back: the process is of no use to the next.
 */
export function makeGuard(
  open: readonly object[],
  names: readonly EngineNames[],
  keeping: ReturnType<typeof makeKeeping>,
): () => string | null {
  const kept = open.map((one, i) => keeping.keep(one, names[i]!))
  return () => {
    let changed: string | null = null
    const wasDefined = keeping.wasDefined()
    for (let i = 0; i < kept.length; i++) {
      const state = kept[i]!
      if (!wasDefined && keeping.isUntouched(state)) continue
      const first = keeping.firstChange(state)
      if (first === null) continue
      changed ??= first
      keeping.restore(state)
      if (keeping.firstChange(state) === null) continue
      throw new Error(`"${first}" of Array or its prototype was changed for good`)
    }
    return changed
  }
}
