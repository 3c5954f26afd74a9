/** Attempts to reach the outer realm by means of the language. */
import { attempt, globalNamed, hostileQuery, outOf, thrownBy } from '../attempts'

/** Evaluates text. No realm of a Workspace compiles strings. */
export const evaluates = hostileQuery(() =>
  attempt(() => (globalNamed('eval') as (text: string) => unknown)('this')),
)

/** Uses the constructor of a function as a compiler. It is disabled together with eval. */
export const constructsFunction = hostileQuery(() =>
  attempt(() => [].constructor.constructor('return this')()),
)

/** Uses three more compilers that no global names. */
export const constructsGenerators = hostileQuery(() =>
  attempt(() => {
    const kinds = [async () => {}, function* () {}, async function* () {}]
    return kinds.some((kind) => thrownBy(() => kind.constructor('return this')) instanceof Function)
  }),
)

/** Follows the prototypes of `ctx`, which the host creates inside the realm. */
export const climbsFromCtx = hostileQuery((ctx) =>
  attempt(() => outOf(ctx, ctx.db, ctx.log, ctx.log.info, ctx.fail, ctx.now)),
)

/** Follows the prototypes of arguments, which are parsed inside the realm. */
export const climbsFromArguments = hostileQuery((_, input) =>
  attempt(() => outOf(input, input.nonce)),
)

/** Follows the prototypes of errors for bad input, which the bridge creates inside the realm. */
export const climbsFromErrors = hostileQuery(() =>
  attempt(() =>
    outOf(
      thrownBy(() => new URL('::')),
      thrownBy(() => atob('!')),
      thrownBy(() => new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255]))),
      thrownBy(() => structuredClone(() => {})),
    ),
  ),
)

/** Overflows the stack inside of the host. The bridge replaces the host's error. */
export const overflowsTheHost = hostileQuery(() =>
  attempt(() => {
    const found: unknown[] = []
    const down = (): void => {
      try {
        down()
      } finally {
        found.push(thrownBy(() => new URL('http://x/')))
        found.push(thrownBy(() => new TextEncoder().encode('x')))
      }
    }
    thrownBy(down)
    return outOf(...found.slice(0, 50))
  }),
)

/** Hooks stack traces, which would expose call sites and `this` of every caller. */
export const preparesStackTraces = hostileQuery(() =>
  attempt(() => {
    const sites: unknown[] = []
    const hooked = Error as unknown as { prepareStackTrace: unknown }
    hooked.prepareStackTrace = (_: unknown, frames: unknown[]) => sites.push(...frames)
    void new Error('x').stack
    return sites.length > 0
  }),
)

/** Reads the caller of a function, which only sloppy code can. Workspace code is strict. */
export const looksAtCallers = hostileQuery(() =>
  attempt(() => {
    function inner(): unknown {
      return (inner as unknown as { caller: unknown }).caller
    }
    return outOf(inner())
  }),
)

/** Follows the prototypes of the functions that the engine passes to `then`. */
export const climbsFromThenables = hostileQuery(async () => {
  const hooks = await new Promise<unknown[]>((done) => {
    // biome-ignore lint/suspicious/noThenProperty: the engine calls it
    void Promise.resolve({ then: (...given: unknown[]) => done([given]) })
  })
  return attempt(() => outOf(hooks, hooks[0]))
})

/** Changes an object that all calls share. It is frozen once the code has loaded. */
export const poisonsObjects = hostileQuery(() =>
  attempt(() => {
    ;(Object.prototype as unknown as { polluted: unknown }).polluted = 'yes'
    return ({} as { polluted?: unknown }).polluted
  }),
)

/** Merges `__proto__` from JSON, which is a plain key and changes only the target object. */
export const poisonsByJson = hostileQuery(() =>
  attempt(() => {
    const { ...copy } = JSON.parse('{"__proto__":{"polluted":"yes"}}')
    Object.assign({}, copy)
    return ({} as { polluted?: unknown }).polluted
  }),
)

/** Changes an array prototype, which is not frozen. The change is undone and fails the call. */
export const poisonsArrays = hostileQuery(() => {
  Array.prototype.map = () => ['poisoned']
  return [1].map((one) => one)[0]
})

/** Runs after the attack above and finds no trace of it. */
export const findsPoison = hostileQuery(() => attempt(() => [1].map((one) => one)[0] !== 1))

/** Changes an array prototype irreversibly, which ends the process. */
export const poisonsArraysForGood = hostileQuery(() => {
  Object.defineProperty(Array.prototype, 'map', { value: () => ['poisoned'], configurable: false })
  return [1].map((one) => one)[0]
})

/** Runs in the next process and finds no trace of the attack above. */
export const findsNoPoison = hostileQuery(() => attempt(() => [1].map((one) => one)[0] !== 1))

/** Replaces methods of promises, which every call uses. They are frozen too. */
export const poisonsPromises = hostileQuery(() =>
  attempt(() => {
    const caught: unknown[] = []
    // biome-ignore lint/suspicious/noThenProperty: that is the attempt
    Promise.prototype.then = function (...rest: unknown[]) {
      caught.push(this, ...rest)
      return this
    } as never
    return caught.length === 0 && 'replaced'
  }),
)

/** Changes prototypes of iterators that no global names. */
export const poisonsIterators = hostileQuery(() =>
  attempt(() => {
    const segments = new Intl.Segmenter().segment('a')
    const wrapped = Iterator.from({ next: () => ({ done: true, value: null }) })
    const kinds: object[] = [[1].values().map((one) => one), wrapped, segments]
    for (const one of [...kinds, segments[Symbol.iterator]()]) {
      try {
        Object.getPrototypeOf(one).left = 'behind'
      } catch {}
      if ('left' in one) return 'left'
    }
    return null
  }),
)

/** Reads the last match of a regular expression of another call. */
export const readsMatches = hostileQuery(() =>
  attempt(() => {
    ;/(\d)/.exec('1')
    const left = RegExp as unknown as { $1?: string; lastMatch?: string; input?: string }
    return left.$1 ?? left.lastMatch ?? left.input
  }),
)

/** Creates a global that the next call would see. */
export const leavesGlobals = hostileQuery(() =>
  attempt(() => {
    ;(globalThis as unknown as { left: unknown }).left = 'behind'
    return 'left' in globalThis
  }),
)

/** Returns a Proxy, whose traps would run wherever the host reads it. */
export const answersAProxy = hostileQuery(
  () =>
    new Proxy(
      {},
      {
        get: (_, name) => (name === 'then' ? undefined : outOf(thrownBy(() => new URL('::')))),
        ownKeys: () => ['escaped'],
        getOwnPropertyDescriptor: () => ({ value: 1, enumerable: true, configurable: true }),
      },
    ),
)
