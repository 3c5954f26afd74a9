/** The globals of a Workspace's code: what is not deterministic is replaced or absent. */
import { runningCall } from './calls.ts'
import { fixDate, fixFormats, fixTemporal, nowMillis } from './globals/clock.ts'
import { newConsole } from './globals/console.ts'
import { createRandom } from './globals/random.ts'
import { URLSearchParams } from './globals/search-params.ts'
import { structuredClone } from './globals/structured-clone.ts'
import { atob, btoa, TextDecoder, TextEncoder } from './globals/text.ts'
import { URL } from './globals/urls.ts'
import { limits } from './limits.ts'
import { RandomStream } from './random-stream.ts'
import { AbortController, AbortSignal, DOMException } from './web/aborts.ts'
import { Request, Response } from './web/bodies.ts'
import { fetch } from './web/fetching.ts'
import { Headers } from './web/headers.ts'
import { TIMER_GLOBALS } from './web/timers.ts'
import { LANGUAGE_GLOBALS } from './workspace-script.ts'

const ABSENT = [
  'Atomics',
  'FinalizationRegistry',
  'ShadowRealm',
  'SharedArrayBuffer',
  'WeakRef',
  'WebAssembly',
]

/** Randomness of the script itself, which is part of no call: its seed is zero. */
const randomAtLoad = new RandomStream('0'.repeat(64))

function currentRandom(): RandomStream {
  const call = runningCall()
  if (call === null) return randomAtLoad
  call.usedRandom = true
  call.random ??= new RandomStream(call.seed)
  return call.random
}

/**
 * Replaces and removes globals, before any code of a Workspace runs. Returns the names of those
 * that the script gets as parameters.
 */
export function installGlobals(): readonly string[] {
  const random = createRandom(currentRandom)
  const replaced = { Date: fixDate() }
  const added = {
    AbortController,
    AbortSignal,
    DOMException,
    Headers,
    Request,
    Response,
    TextDecoder,
    TextEncoder,
    URL,
    URLSearchParams,
    atob,
    btoa,
    // The time of a Query or a Mutation stands still, so reading it would tell nothing.
    console: newConsole(limits.actions ? nowMillis : () => 0),
    crypto: random.crypto,
    queueMicrotask: (task: () => unknown): void => {
      Promise.resolve().then(task)
    },
    structuredClone,
    ...(limits.actions && { fetch, ...TIMER_GLOBALS }),
  }
  for (const name of ABSENT) Reflect.deleteProperty(globalThis, name)
  // They hold what the last match of any call left, such as `RegExp.$1`.
  for (const [name, { get }] of Object.entries(Object.getOwnPropertyDescriptors(RegExp))) {
    if (get !== undefined) Reflect.deleteProperty(RegExp, name)
  }
  for (const [name, value] of Object.entries({ ...added, ...replaced })) define(name, value)
  fixFormats()
  fixTemporal()
  Math.random = random.random
  // The frames of this realm stand above the author's: those of the encoder three times for each
  // level of a value. The runtime's 10 would hide what called it.
  Error.stackTraceLimit = 100
  // The engine calls this hook with frames of the outer realm.
  Object.defineProperty(Error, 'prepareStackTrace', { value: undefined, writable: false })
  return [...LANGUAGE_GLOBALS, 'globalThis', ...Object.keys(added)]
}

function define(name: string, value: unknown): void {
  // The bundler may have renamed what has the name of a global.
  if (typeof value === 'function') {
    Object.defineProperty(value, 'name', { value: name, configurable: true })
  }
  const hidden = { writable: true, enumerable: false, configurable: true }
  Object.defineProperty(globalThis, name, { value, ...hidden })
}
