/** Attempts to use objects of the runtime and the operating system. */
import { attempt, attemptLater, globalNamed, hostileMutation, hostileQuery } from '../attempts'

type Loose = Record<string, (...given: unknown[]) => never>
const used = (name: string) => globalNamed(name) as Loose

/** Reads the process and its environment. The realm has none. */
export const findsProcess = hostileQuery(() => attempt(() => used('process').env))

/** Loads native modules of Node. */
export const bindsProcess = hostileQuery(() =>
  attempt(() => used('process').binding!('fs') ?? used('process').dlopen),
)

/** Uses the runtime itself: files, processes, sockets. */
export const findsBun = hostileQuery(() => attempt(() => used('Bun').file!('/etc/passwd')))

/** Opens native libraries. */
export const opensLibraries = hostileQuery(() =>
  attempt(() => used('Bun').FFI ?? used('require')!('bun:ffi')),
)

/** Finds a module loader by any of its names. */
export const requires = hostileQuery(() =>
  attempt(() =>
    ['require', 'module', 'Loader', 'createRequire', '__require', 'importSync'].find(
      (name) => globalNamed(name) !== undefined,
    ),
  ),
)

/** Finds helpers of the engine's own shells. */
export const findsEngineShell = hostileQuery(() =>
  attempt(() =>
    ['$vm', '$', 'gc', 'load', 'read', 'readFile', 'print', 'quit', 'edenGC', 'jscDescribe'].find(
      (name) => globalNamed(name) !== undefined,
    ),
  ),
)

/** Creates a realm, which would have its own compilers. */
export const makesRealms = hostileQuery(() =>
  attempt(
    () => new (globalNamed('ShadowRealm') as new () => { evaluate(text: string): unknown })(),
  ),
)

/** Starts a thread or a process. */
export const spawns = hostileQuery(() =>
  attempt(() => {
    const Worker = globalNamed('Worker') as new (url: string) => unknown
    return new Worker('data:text/javascript,for(;;);') ?? used('Bun').spawn!(['/bin/sh'])
  }),
)

/** Starts a fork bomb. There is no timer, thread or process to multiply. */
export const forks = hostileQuery(() =>
  attempt(() => {
    const start = globalNamed('setTimeout') as (work: () => void) => void
    const bomb = (): void => {
      start(bomb)
      start(bomb)
    }
    return bomb()
  }),
)

/** Opens sockets. A Query has no network, and neither has its process. */
export const opensSockets = hostileQuery(() =>
  attemptLater(async () => {
    for (const name of ['WebSocket', 'EventSource', 'XMLHttpRequest', 'RTCPeerConnection']) {
      if (globalNamed(name) !== undefined) return name
    }
    return used('Bun').connect!({ hostname: '127.0.0.1', port: 22 })
  }),
)

/** Fetches the metadata service of a cloud. */
export const fetches = hostileQuery(() =>
  attemptLater(() => used('globalThis').fetch!('http://169.254.169.254/latest/meta-data/')),
)

/** Reads the server's environment from the kernel's file. */
export const readsEnvironment = hostileQuery(() =>
  attemptLater(() =>
    (used('Bun').file!('/proc/self/environ') as { text(): Promise<string> }).text(),
  ),
)

/** Writes a file, which the test would find afterwards. */
export const writesFiles = hostileMutation((_, { nonce }) =>
  attemptLater(() => used('Bun').write!(`/tmp/svc-hostile-${nonce}`, 'was here')),
)

/** Opens a database of its own. */
export const opensDatabases = hostileQuery(() =>
  attempt(() => new (used('require')!('bun:sqlite') as { Database: new () => unknown }).Database()),
)

/** Shares memory between threads, which gives a clock precise enough for cache attacks. */
export const sharesMemory = hostileQuery(() =>
  attempt(() => ['SharedArrayBuffer', 'Atomics'].find((name) => globalNamed(name) !== undefined)),
)

/** Compiles WebAssembly. */
export const compilesWasm = hostileQuery(() =>
  attempt(() => used('WebAssembly').compile!(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]))),
)

/** Observes garbage collection, whose timing depends on other calls. */
export const watchesMemory = hostileQuery(() =>
  attempt(() =>
    ['WeakRef', 'FinalizationRegistry'].find((name) => globalNamed(name) !== undefined),
  ),
)

/** Reads a clock that advances during the call. All clocks of a call are fixed. */
export const timesItself = hostileQuery(() =>
  attempt(() => {
    const read = () => [Date.now(), `${new Date()}`, new Intl.DateTimeFormat().format()].join()
    const before = read()
    for (let i = 0; i < 1e7; i++);
    return read() !== before || globalNamed('performance')
  }),
)

/** Stores its `ctx` for the next call. `ctx` is invalid once its call has ended. */
let kept: { readonly db: { get(id: string): Promise<unknown> } } | null = null
export const usesAnotherCtx = hostileQuery((ctx) => {
  const before = kept
  kept = ctx
  return attemptLater(async () => before?.db.get('channels_01ARZ3NDEKTSV4RRFFQ69G5FAV'))
})
