/** Globals of browsers and of Node that authors expect and a realm does not have. */

const NO_TIMERS = 'Queries and Mutations have no timers; do it in an Action'
/** Replacements by name, each the end of a sentence. The object has no prototype. */
export const REPLACEMENTS: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
  fetch: 'Queries and Mutations reach no network; do it in an Action',
  process: 'there is no process; read settings with ctx.config.variable("NAME")',
  Buffer: 'use a Uint8Array, with TextEncoder, TextDecoder, toBase64() and toHex()',
  require: 'use import; svc bundles it',
  module: 'use export',
  __dirname: 'a bundle has no files',
  setTimeout: NO_TIMERS,
  setInterval: NO_TIMERS,
  clearTimeout: NO_TIMERS,
  clearInterval: NO_TIMERS,
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
