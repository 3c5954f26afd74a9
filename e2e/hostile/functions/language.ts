/** Ways from the language of a Function into the realm around it. */
import { attempt, globalNamed, hostileQuery, outOf, thrownBy } from '../attempts'

/** Text as code. No realm of a Workspace compiles strings. */
export const evaluates = hostileQuery(() =>
  attempt(() => (globalNamed('eval') as (text: string) => unknown)('this')),
)

/** The constructor of every function is a compiler; it is switched off with eval. */
export const constructsFunction = hostileQuery(() =>
  attempt(() => [].constructor.constructor('return this')()),
)

/** Three more compilers that are reached through no global. */
export const constructsGenerators = hostileQuery(() =>
  attempt(() => {
    const kinds = [async () => {}, function* () {}, async function* () {}]
    return kinds.some((kind) => thrownBy(() => kind.constructor('return this')) instanceof Function)
  }),
)

/** `ctx` is made by the host, so its prototypes might lead there; all are of this realm. */
export const climbsFromCtx = hostileQuery((ctx) =>
  attempt(() => outOf(ctx, ctx.db, ctx.log, ctx.log.info, ctx.fail, ctx.now)),
)

/** So might arguments. They are parsed inside. */
export const climbsFromArguments = hostileQuery((_, input) =>
  attempt(() => outOf(input, input.nonce)),
)

/** So might what the host throws for bad input; the bridge throws nothing across. */
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

/** A stack that overflows inside of the host makes the error there; the bridge replaces it. */
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

/** The engine hands call sites, and with them `this` of every caller, to this hook: it is fixed. */
export const preparesStackTraces = hostileQuery(() =>
  attempt(() => {
    const sites: unknown[] = []
    const hooked = Error as unknown as { prepareStackTrace: unknown }
    hooked.prepareStackTrace = (_: unknown, frames: unknown[]) => sites.push(...frames)
    void new Error('x').stack
    return sites.length > 0
  }),
)

/** Sloppy functions know their callers. Code of a Workspace is strict. */
export const looksAtCallers = hostileQuery(() =>
  attempt(() => {
    function inner(): unknown {
      return (inner as unknown as { caller: unknown }).caller
    }
    return outOf(inner())
  }),
)

/** A promise resolves with what the host gave to `then`: functions of this realm. */
export const climbsFromThenables = hostileQuery(async () => {
  const hooks = await new Promise<unknown[]>((done) => {
    // biome-ignore lint/suspicious/noThenProperty: the engine calls it
    void Promise.resolve({ then: (...given: unknown[]) => done([given]) })
  })
  return attempt(() => outOf(hooks, hooks[0]))
})

/** What is shared by all calls is frozen when the code has loaded. */
export const poisonsObjects = hostileQuery(() =>
  attempt(() => {
    ;(Object.prototype as unknown as { polluted: unknown }).polluted = 'yes'
    return ({} as { polluted?: unknown }).polluted
  }),
)

/** `__proto__` in JSON is a plain key, and merging it reaches an object of one's own. */
export const poisonsByJson = hostileQuery(() =>
  attempt(() => {
    const { ...copy } = JSON.parse('{"__proto__":{"polluted":"yes"}}')
    Object.assign({}, copy)
    return ({} as { polluted?: unknown }).polluted
  }),
)

/** Array prototypes stay open for speed; a change is put back and fails the call that made it. */
export const poisonsArrays = hostileQuery(() => {
  Array.prototype.map = () => ['poisoned']
  return [1].map((one) => one)[0]
})

/** After that one: nothing is left of it. */
export const findsPoison = hostileQuery(() => attempt(() => [1].map((one) => one)[0] !== 1))

/** Nothing puts it back: the process ends. */
export const poisonsArraysForGood = hostileQuery(() => {
  Object.defineProperty(Array.prototype, 'map', { value: () => ['poisoned'], configurable: false })
  return [1].map((one) => one)[0]
})

/** In the next one. */
export const findsNoPoison = hostileQuery(() => attempt(() => [1].map((one) => one)[0] !== 1))

/** The promises that carry every call: frozen too. */
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

/** Kinds of iterators whose prototypes no global leads to. */
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

/** What another call matched, where regular expressions once left it. */
export const readsMatches = hostileQuery(() =>
  attempt(() => {
    ;/(\d)/.exec('1')
    const left = RegExp as unknown as { $1?: string; lastMatch?: string; input?: string }
    return left.$1 ?? left.lastMatch ?? left.input
  }),
)

/** A global that the next call would see. */
export const leavesGlobals = hostileQuery(() =>
  attempt(() => {
    ;(globalThis as unknown as { left: unknown }).left = 'behind'
    return 'left' in globalThis
  }),
)

/** Reads of a Proxy that the host makes would run code at a place of the attacker's choice. */
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
