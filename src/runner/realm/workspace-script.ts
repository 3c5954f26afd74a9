/** The script of a Release: compiled outside of the realm, run inside of it. */

/** Name of the script in stack traces. */
export const SCRIPT_NAME = 'release.js'

/** The compiled script: a function of `__svc` and of the globals that it gets as parameters. */
export type Script = (svc: unknown, ...globals: unknown[]) => void

/**
 * Globals of the language. The realm's own code reads them from constants that are set before any
 * code of a Workspace runs; that code gets them as parameters, since a global is twice as slow.
 */
export const LANGUAGE_GLOBALS: readonly string[] = [
  'AggregateError',
  'Array',
  'ArrayBuffer',
  'BigInt',
  'BigInt64Array',
  'BigUint64Array',
  'Boolean',
  'DataView',
  'Date',
  'Error',
  'EvalError',
  'Float32Array',
  'Float64Array',
  'Int16Array',
  'Int32Array',
  'Int8Array',
  'Intl',
  'Iterator',
  'JSON',
  'Map',
  'Math',
  'Number',
  'Object',
  'Promise',
  'Proxy',
  'RangeError',
  'ReferenceError',
  'Reflect',
  'RegExp',
  'Set',
  'String',
  'SuppressedError',
  'Symbol',
  'SyntaxError',
  'TypeError',
  'URIError',
  'Uint16Array',
  'Uint32Array',
  'Uint8Array',
  'Uint8ClampedArray',
  'WeakMap',
  'WeakSet',
  'decodeURI',
  'decodeURIComponent',
  'encodeURI',
  'encodeURIComponent',
  'isFinite',
  'isNaN',
  'parseFloat',
  'parseInt',
]

/**
 * The source of the script as a function of `__svc` and `globalNames`. The script itself begins on
 * the second line, which error reports subtract from line numbers.
 */
export function scriptSource(source: string, globalNames: readonly string[]): string {
  const parameters = ['__svc', ...globalNames].join()
  return `(function (${parameters}) { 'use strict'; return (function () {\n${source}\n})() })`
}
