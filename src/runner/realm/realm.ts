/**
 * Puts the parts of this folder together inside a fresh realm. `realmSource` is the text that is
 * evaluated there; the outer process calls nothing but what `makeRealm` answers.
 */

import { VALUE_DEPTH_MAX, VALUE_ENTRIES_MAX } from '../../value/values.ts'
import type { LoadLimits } from '../messages.ts'
import { ERROR_CHARACTERS_MAX, LOG_CHARACTERS_MAX, LOG_LINES_MAX } from '../messages.ts'
import { type Bridge, makeBridge } from './bridge.ts'
import { type Call, type Calls, makeEndings, makeOperations, makeWrite } from './calls.ts'
import { makeDate, makeFixedFormats, makeFixedTemporal } from './clock.ts'
import { makeStructuredClone } from './cloning.ts'
import { makeDecode, makeDescribe, makeEncode, makeEncodePlain, makeTrail } from './codec.ts'
import { makeMutationDatabase, makeQueryDatabase, makeReads } from './database.ts'
import { makeDispatch, makeLoad, type Script } from './dispatching.ts'
import { makeEnvironment, makeFreeze, makeGuard } from './environment.ts'
import { makeGlobals } from './globals.ts'
import { makeContext, makeRun } from './handlers.ts'
import { makeConsole, makeLog, makeWriteLog } from './logging.ts'
import { makeRandom, makeRandomStream } from './random.ts'
import { makeRangeBuilder, makeRangeText, makeRows } from './ranges.ts'
import { makeReport } from './reports.ts'
import { makeForm, makePairsReader, makeSearchParams } from './search-params.ts'
import { makeText } from './text.ts'
import { makeUrl, URL_PARTS } from './urls.ts'
import { makeReadWorkspace } from './workspace.ts'

/** Name of the Workspace's script in stack traces. */
export const SCRIPT_NAME = 'release.js'
/** Documents that one range operation asks for at most. */
const BATCH_MAX = 1_024
/** Four times what a document may have: the server says which bound was passed. */
const OPERATION_CHARACTERS_MAX = 4 * 1024 * 1024
/** Of the path in a message about a value. */
const PATH_CHARACTERS_MAX = 100

export interface Realm {
  /** Runs the Workspace's script once; the JSON text of an ErrorReport where it threw. */
  load(script: Script): string | null
  /** Works one frame of the server, up to the microtasks that follow from it. */
  dispatch(text: string): void
  /** What the call has taken of the CPU up to its last segment. */
  spentMicros(call: number): number
  /** After those microtasks: ends calls that are done, took too much, or have nothing to go on. */
  settle(call: number, spentMicros: number): void
}

const PARTS = {
  makeBridge,
  makeConsole,
  makeContext,
  makeDate,
  makeDecode,
  makeDescribe,
  makeDispatch,
  makeEncode,
  makeEncodePlain,
  makeEndings,
  makeEnvironment,
  makeFixedFormats,
  makeFixedTemporal,
  makeForm,
  makeFreeze,
  makeGlobals,
  makeGuard,
  makeLoad,
  makeLog,
  makeMutationDatabase,
  makeOperations,
  makePairsReader,
  makeQueryDatabase,
  makeRandom,
  makeRandomStream,
  makeRangeBuilder,
  makeRangeText,
  makeReads,
  makeReadWorkspace,
  makeReport,
  makeRows,
  makeRun,
  makeSearchParams,
  makeStructuredClone,
  makeText,
  makeTrail,
  makeUrl,
  makeWrite,
  makeWriteLog,
}
export type Parts = typeof PARTS

const BOUNDS = {
  batch: BATCH_MAX,
  depth: VALUE_DEPTH_MAX,
  entries: VALUE_ENTRIES_MAX,
  errorCharacters: ERROR_CHARACTERS_MAX,
  logCharacters: LOG_CHARACTERS_MAX,
  logLines: LOG_LINES_MAX,
  operationCharacters: OPERATION_CHARACTERS_MAX,
  pathCharacters: PATH_CHARACTERS_MAX,
  urlParts: URL_PARTS,
  scriptName: SCRIPT_NAME,
}

/** Globals that the code of a Workspace gets as parameters: a global is twice as slow to reach. */
const GLOBAL_NAMES = [
  ...['AggregateError', 'Array', 'ArrayBuffer', 'BigInt', 'BigInt64Array', 'BigUint64Array'],
  ...['Boolean', 'DataView', 'Date', 'Error', 'EvalError', 'Float32Array', 'Float64Array'],
  ...['Int16Array', 'Int32Array', 'Int8Array', 'Intl', 'Iterator', 'JSON', 'Map', 'Math'],
  ...['Number', 'Object', 'Promise', 'Proxy', 'RangeError', 'ReferenceError', 'Reflect'],
  ...['RegExp', 'Set', 'String', 'Symbol', 'SyntaxError', 'TextDecoder', 'TextEncoder'],
  ...['TypeError', 'URIError', 'URL', 'URLSearchParams', 'Uint16Array', 'Uint32Array'],
  ...['Uint8Array', 'Uint8ClampedArray', 'WeakMap', 'WeakSet', 'atob', 'btoa', 'console'],
  ...['crypto', 'decodeURI', 'decodeURIComponent', 'encodeURI', 'encodeURIComponent'],
  ...['globalThis', 'isFinite', 'isNaN', 'parseFloat', 'parseInt', 'queueMicrotask'],
  'structuredClone',
]

/** A script whose value is a function from a Bridge to a Realm. */
export function realmSource(limits: LoadLimits): string {
  const parts = Object.entries(PARTS).map(([name, part]) => `${name}: (${part})`)
  const bounds = JSON.stringify({ ...BOUNDS, ...limits, globalNames: GLOBAL_NAMES })
  const early = GLOBAL_NAMES.filter((name) => !ADDED.has(name)).join()
  return `(function (bridge) { 'use strict'
    const { ${early} } = globalThis
    const parts = { ${parts.join(',\n')} }
    return (${makeRealm})(parts, bridge, ${bounds})
  })`
}

const ADDED = new Set([
  ...['TextDecoder', 'TextEncoder', 'URL', 'URLSearchParams', 'atob', 'btoa', 'crypto'],
  ...['globalThis', 'queueMicrotask', 'structuredClone'],
])

/** The Workspace's script as a function; its first line stands on the second line of the text. */
export function scriptSource(source: string): string {
  const parameters = ['__svc', ...GLOBAL_NAMES].join()
  return `(function (${parameters}) { 'use strict'; return (function () {\n${source}\n})() })`
}

export type Bounds = typeof BOUNDS & LoadLimits & { readonly globalNames: readonly string[] }

export function makeRealm(parts: Parts, outer: Bridge, bounds: Bounds): Realm {
  const bridge = parts.makeBridge(outer)
  const calls: Calls = { active: new Map(), waiting: new Map(), done: [], current: null }
  const write = parts.makeWriteLog(bounds.logLines, bounds.logCharacters)
  parts.makeGlobals(parts, bridge, calls, write, bounds)

  const trail = parts.makeTrail(bounds.pathCharacters)
  const { depth, entries } = bounds
  const plain = parts.makeEncodePlain(trail)
  const encode = parts.makeEncode(depth, entries, trail, plain, parts.makeDescribe())
  const decode = parts.makeDecode()
  const endings = parts.makeEndings(bridge, calls, bounds.resultBytes)
  const report = parts.makeReport(bounds.errorCharacters, bounds.scriptName)
  const owners = new WeakMap()
  const writes = { Write: parts.makeWrite(owners), owners }
  const { operationCharacters } = bounds
  const operations = parts.makeOperations(bridge, calls, decode, writes, operationCharacters)
  const loadScript = parts.makeLoad(parts.makeReadWorkspace(), bounds.globalNames)
  let dispatch: Realm['dispatch'] | null = null

  function load(script: Script): void {
    const workspace = loadScript(script)
    const Rows = parts.makeRows(bounds.batch, parts.makeRangeText())
    const Builder = parts.makeRangeBuilder(encode)
    const Reads = parts.makeReads(workspace.tables, Rows, Builder)
    const Query = parts.makeQueryDatabase(Reads)
    const Mutation = parts.makeMutationDatabase(Reads, encode)
    const open = [Array, Array.prototype, Reflect.getPrototypeOf([].values())!]
    parts.makeFreeze(open)([Rows, Builder, Query, Mutation, writes.Write])
    const restore = parts.makeGuard(open)()
    const failures = new WeakMap()
    const log = (call: Call) => parts.makeLog(call, write)
    const contextOf = parts.makeContext(operations, failures, { Query, Mutation, log })
    const own = { contextOf, failures, restore }
    const run = parts.makeRun(calls, { encode, decode }, operations, endings, report, own)
    dispatch = parts.makeDispatch(bridge, calls, workspace, { operations, endings, run })
  }

  return {
    load(script) {
      try {
        load(script)
        return null
      } catch (thrown) {
        return report(thrown)
      }
    },
    dispatch: (text) => dispatch!(text),
    spentMicros: (id) => calls.active.get(id)?.spentMicros ?? 0,
    settle(id, spentMicros) {
      for (const end of calls.done.splice(0)) end()
      calls.current = null
      const call = calls.active.get(id)
      if (call !== undefined) {
        call.spentMicros = spentMicros
        if (spentMicros > bounds.cpuMillis * 1000) endings.cpu(call)
      }
      if (calls.waiting.size > 0) return
      for (const stuck of calls.active.values()) {
        const message = 'the Function waits for a promise that nothing will settle'
        endings.threw(stuck, report(new Error(message), null))
      }
    },
  }
}
