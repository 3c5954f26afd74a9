/** What a server reads of an error that a Workspace's code threw. */
import type { ErrorReport } from '../messages.ts'
import type { makeInspect } from './logging.ts'

/**
 * An error, or whatever else was thrown, as the JSON text of an ErrorReport. No method of an array
 * and no iterator is used: the code that threw may have changed them.
 */
export function makeReport(
  charactersMax: number,
  scriptName: string,
  inspect: ReturnType<typeof makeInspect>,
) {
  const { stringify } = JSON
  const frame = new RegExp(`^ *(at .*?${scriptName.replace('.', '\\.')}:)(\\d+)(.*)$`)
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
  })

  function mended(message: string): string {
    const name = /^(?:Can't find variable: (\w+)|(\w+) is not defined)$/.exec(message)
    const mend = absent[name?.[1] ?? name?.[2] ?? '']
    return mend === undefined ? message : `${message}: ${mend}`
  }

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
  function text(read: () => unknown, otherwise: string): string {
    try {
      const found = read()
      return typeof found === 'string' ? found.slice(0, charactersMax) : otherwise
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
    const frames = framesOf(text(() => (place as ErrorReport).stack, ''))
    return `[${stringify(name)},${stringify(before + mended(message))},${stringify(frames)}]`
  }
}
