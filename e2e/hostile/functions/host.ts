/** Things of the runtime and the operating system that a Function might still find. */
import { attempt, attemptLater, globalNamed, hostileMutation, hostileQuery } from '../attempts'

type Loose = Record<string, (...given: unknown[]) => never>
const used = (name: string) => globalNamed(name) as Loose

/** The process, and through it the environment. There is none in the realm. */
export const findsProcess = hostileQuery(() => attempt(() => used('process').env))

/** Native modules of Node. */
export const bindsProcess = hostileQuery(() =>
  attempt(() => used('process').binding!('fs') ?? used('process').dlopen),
)

/** The runtime itself: files, processes, sockets. */
export const findsBun = hostileQuery(() => attempt(() => used('Bun').file!('/etc/passwd')))

/** Native code by name. */
export const opensLibraries = hostileQuery(() =>
  attempt(() => used('Bun').FFI ?? used('require')!('bun:ffi')),
)

/** A loader of modules under any of its names. */
export const requires = hostileQuery(() =>
  attempt(() =>
    ['require', 'module', 'Loader', 'createRequire', '__require', 'importSync'].find(
      (name) => globalNamed(name) !== undefined,
    ),
  ),
)

/** Helpers that the engine's own shells have. */
export const findsEngineShell = hostileQuery(() =>
  attempt(() =>
    ['$vm', '$', 'gc', 'load', 'read', 'readFile', 'print', 'quit', 'edenGC', 'jscDescribe'].find(
      (name) => globalNamed(name) !== undefined,
    ),
  ),
)

/** A new realm would have its own compilers. */
export const makesRealms = hostileQuery(() =>
  attempt(
    () => new (globalNamed('ShadowRealm') as new () => { evaluate(text: string): unknown })(),
  ),
)

/** A thread or a process of one's own. */
export const spawns = hostileQuery(() =>
  attempt(() => {
    const Worker = globalNamed('Worker') as new (url: string) => unknown
    return new Worker('data:text/javascript,for(;;);') ?? used('Bun').spawn!(['/bin/sh'])
  }),
)

/** A fork bomb, with the only thing at hand that multiplies: no timer, no thread, no process. */
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

/** Any socket. A Query has no network, and the process none either. */
export const opensSockets = hostileQuery(() =>
  attemptLater(async () => {
    for (const name of ['WebSocket', 'EventSource', 'XMLHttpRequest', 'RTCPeerConnection']) {
      if (globalNamed(name) !== undefined) return name
    }
    return used('Bun').connect!({ hostname: '127.0.0.1', port: 22 })
  }),
)

/** The same by `fetch`: the metadata service of a cloud. */
export const fetches = hostileQuery(() =>
  attemptLater(() => used('globalThis').fetch!('http://169.254.169.254/latest/meta-data/')),
)

/** The server's environment, by the kernel's file of it. */
export const readsEnvironment = hostileQuery(() =>
  attemptLater(() =>
    (used('Bun').file!('/proc/self/environ') as { text(): Promise<string> }).text(),
  ),
)

/** A file beside the documents; the mark would be found afterwards. */
export const writesFiles = hostileMutation((_, { nonce }) =>
  attemptLater(() => used('Bun').write!(`/tmp/svc-hostile-${nonce}`, 'was here')),
)

/** A database opened beside the engine. */
export const opensDatabases = hostileQuery(() =>
  attempt(() => new (used('require')!('bun:sqlite') as { Database: new () => unknown }).Database()),
)

/** Memory that two threads share is a clock fine enough to watch caches with. */
export const sharesMemory = hostileQuery(() =>
  attempt(() => ['SharedArrayBuffer', 'Atomics'].find((name) => globalNamed(name) !== undefined)),
)

/** Machine code of one's own. */
export const compilesWasm = hostileQuery(() =>
  attempt(() => used('WebAssembly').compile!(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]))),
)

/** When memory is freed says what others do. */
export const watchesMemory = hostileQuery(() =>
  attempt(() =>
    ['WeakRef', 'FinalizationRegistry'].find((name) => globalNamed(name) !== undefined),
  ),
)

/** A clock that runs while the call does. All clocks of a call stand still. */
export const timesItself = hostileQuery(() =>
  attempt(() => {
    const read = () => [Date.now(), `${new Date()}`, new Intl.DateTimeFormat().format()].join()
    const before = read()
    for (let i = 0; i < 1e7; i++);
    return read() !== before || globalNamed('performance')
  }),
)

/** What a call keeps for itself of another's: `ctx` is dead when its call is over. */
let kept: { readonly db: { get(id: string): Promise<unknown> } } | null = null
export const usesAnotherCtx = hostileQuery((ctx) => {
  const before = kept
  kept = ctx
  return attemptLater(async () => before?.db.get('channels_01ARZ3NDEKTSV4RRFFQ69G5FAV'))
})
