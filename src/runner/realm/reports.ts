/** What a server reads of an error that a Workspace's code threw. */
import type { ErrorReport } from '../messages.ts'
import type { makeInspect } from './logging.ts'

/** Adds to a message of the engine what to do instead. */
export function makeMended(): (message: string) => string {
  const absent: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
    fetch: 'Queries and Mutations reach no network; do it in an Action',
    process: 'there is no process; take settings as arguments',
    Buffer: 'use Uint8Array, TextEncoder and TextDecoder',
    require: 'use import; svc bundles it',
    setTimeout: 'Queries and Mutations have no timers; do it in an Action',
    setInterval: 'Queries and Mutations have no timers; do it in an Action',
    clearTimeout: 'Queries and Mutations have no timers; do it in an Action',
    clearInterval: 'Queries and Mutations have no timers; do it in an Action',
    setImmediate: 'use setTimeout, in an Action',
    XMLHttpRequest: 'use fetch, in an Action',
    WebSocket: 'use fetch, in an Action',
    ReadableStream: 'bodies are whole: use text(), json() or bytes()',
    FormData: 'use URLSearchParams, or put the parts of the body together',
    Blob: 'use a Uint8Array',
    performance: 'use ctx.now()',
    WeakRef: 'when memory is freed is not deterministic',
    FinalizationRegistry: 'when memory is freed is not deterministic',
    SharedArrayBuffer: 'a Function runs on one thread; use ArrayBuffer',
    Atomics: 'a Function runs on one thread',
    WebAssembly: 'Functions are JavaScript only',
    Event: 'only an AbortSignal has listeners; call a function',
    EventTarget: 'only an AbortSignal has listeners; keep functions in a Set and call them',
    window: 'use globalThis',
    self: 'use globalThis',
    global: 'use globalThis',
  })
  const readOnly =
    'all calls share what is built in, with the names that an object inherits from it: give a ' +
    'name to the object itself by Object.defineProperty or a class'

  function mendOf(message: string): string | undefined {
    if (message === 'Attempted to assign to readonly property.') return readOnly
    if (message.includes("'crypto.subtle")) return 'import a library that is written in JavaScript'
    const name = /^(?:Can't find variable: (\w+)|(\w+) is not defined)$/.exec(message)
    return absent[name?.[1] ?? name?.[2] ?? '']
  }

  return (message) => {
    const mend = mendOf(message)
    return mend === undefined ? message : `${message}: ${mend}`
  }
}

/**
 * An error, or whatever else was thrown, as the JSON text of an ErrorReport. No method of an array
 * and no iterator is used: the code that threw may have changed them.
 */
export function makeReport(
  bounds: { readonly errorCharacters: number; readonly scriptName: string },
  inspect: ReturnType<typeof makeInspect>,
  mended: ReturnType<typeof makeMended>,
) {
  const { stringify } = JSON
  const { errorCharacters: charactersMax, scriptName } = bounds
  /** Length of a stack with the frames of this realm, which a report leaves out. */
  const stackCharactersMax = 8 * charactersMax
  const frame = new RegExp(`^ *(at .*?${scriptName.replace('.', '\\.')}:)(\\d+)(.*)$`)
  /** The wrapper stands on a line of its own above the script. */
  function framesOf(stack: string): string {
    const lines = stack.split('\n')
    let frames = ''
    for (let i = 0; i < lines.length; i++) {
      const found = frame.exec(lines[i]!)
      if (found === null) continue
      frames += `${frames === '' ? '' : '\n'}${found[1]}${Number(found[2]) - 1}${found[3]}`
    }
    return frames
  }

  /** Reading a thrown object runs code of its author, which may throw again. */
  function text(read: () => unknown, otherwise: string, most = charactersMax): string {
    try {
      const found = read()
      return typeof found === 'string' ? found.slice(0, most) : otherwise
    } catch {
      return otherwise
    }
  }

  /** `before` stands in front of its message. */
  return (thrown: unknown, place: unknown = thrown, before = ''): string => {
    const name = text(() => (thrown as ErrorReport).name, 'Error')
    const message = text(() => {
      if (thrown instanceof Error) return thrown.message
      return `thrown: ${typeof thrown === 'object' ? inspect(thrown) : String(thrown)}`
    }, 'thrown')
    const stack = text(() => (place as ErrorReport).stack, '', stackCharactersMax)
    const frames = stringify(framesOf(stack).slice(0, charactersMax))
    return `[${stringify(name)},${stringify(before + mended(message))},${frames}]`
  }
}
