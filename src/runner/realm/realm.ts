/**
 * Puts the parts of this folder together inside a fresh realm. `realmSource` is the text that is
 * evaluated there; the outer process calls nothing but what `makeRealm` answers.
 */

import { GUEST_SECONDS_MAX } from '../../value/identities.ts'
import { TransientMap } from '../../value/memory/transient-map.ts'
import { VALUE_DEPTH_MAX, VALUE_ENTRIES_MAX } from '../../value/values.ts'
import type { LoadLimits } from '../messages.ts'
import {
  ERROR_CHARACTERS_MAX,
  LOG_CHARACTERS_MAX,
  LOG_LINES_MAX,
  PIPELINED_CHARACTERS_MAX,
  REQUEST_BYTES_MAX,
  REQUEST_HEAD_CHARACTERS_MAX,
  TIMERS_MAX,
} from '../messages.ts'
import { type Bridge, makeBridge } from './bridge.ts'
import { makeAuth } from './callers.ts'
import {
  type Call,
  makeCalls,
  makeEndings,
  makeOperations,
  makeReplies,
  makeSending,
  makeWrite,
} from './calls.ts'
import { makeDate, makeFixedFormats, makeFixedTemporal } from './clock.ts'
import { makeStructuredClone } from './cloning.ts'
import { makeDecode, makeDescribe, makeEncode, makeEncodePlain, makeTrail } from './codec.ts'
import { makeConfiguration } from './configuration.ts'
import { makeContext, makeRunOf } from './contexts.ts'
import { makeMutationDatabase, makeQueryDatabase, makeReads } from './database.ts'
import {
  makeDispatch,
  makeFound,
  makeLoad,
  makeNewCall,
  makeSettle,
  type Script,
} from './dispatching.ts'
import { makeCopying, makeDocuments } from './documents.ts'
import {
  type EngineNames,
  makeDefinitions,
  makeEnvironment,
  makeFreeze,
  makeGuard,
  makeKeeping,
} from './environment.ts'
import { makeClock, makeGlobals } from './globals.ts'
import { makeRun } from './handlers.ts'
import { makeConsole, makeInspect, makeLog, makeWriteLog } from './logging.ts'
import { makeRandom, makeRandomStream } from './random.ts'
import { makeRangeBuilder, makeRangeText, makeRows } from './ranges.ts'
import { makeRejected } from './rejections.ts'
import { makeMended, makeReport } from './reports.ts'
import { makeForm, makePairsReader, makeSearchParams } from './search-params.ts'
import { makeProceed, makeTelling } from './telling.ts'
import { makeText } from './text.ts'
import { makeUrl, URL_PARTS } from './urls.ts'
import {
  makeAbortController,
  makeAbortListeners,
  makeAborts,
  makeDomException,
} from './web/aborts.ts'
import { makeBody, makeBodyReader, makeRequest, makeResponse } from './web/exchanges.ts'
import { makeFetch } from './web/fetching.ts'
import { makeHeaders, makeHeaderValues } from './web/headers.ts'
import { makeAlarm, makeTimers } from './web/timers.ts'
import { makeReadWorkspace } from './workspace.ts'

/** Name of the Workspace's script in stack traces. */
export const SCRIPT_NAME = 'release.js'
/** Documents that one range operation asks for at most. */
const BATCH_MAX = 1_024
/** Four times what a document may have: the server says which bound was passed. */
const OPERATION_CHARACTERS_MAX = 4 * 1024 * 1024
/** Operations that a call tells in a row before it waits for the server. */
const TOLD_MAX = 1_024
/** Of the path in a message about a value. */
const PATH_CHARACTERS_MAX = 100

export interface Realm {
  /** Runs the Workspace's script once; the JSON text of an ErrorReport where it threw. */
  load(script: Script): string | null
  /** Works one frame of the server, up to the microtasks that follow from it. */
  dispatch(text: string): void
  /** Goes on behind an operation that needs no frame; false where there is none. */
  proceed(): boolean
  /** A promise was rejected in this frame, and nobody has looked at it. */
  rejected(reason: unknown, promise: object): void
  /** What the call has taken of the CPU up to its last segment. */
  spentMicros(call: number): number
  /** After those microtasks, which with the frame took `elapsedMicros` of the CPU. */
  settle(elapsedMicros: number): void
}

const PARTS = {
  TransientMap,
  makeAbortController,
  makeAbortListeners,
  makeAborts,
  makeAlarm,
  makeBody,
  makeBodyReader,
  makeBridge,
  makeCalls,
  makeClock,
  makeConsole,
  makeAuth,
  makeConfiguration,
  makeContext,
  makeDate,
  makeDecode,
  makeDefinitions,
  makeDescribe,
  makeDispatch,
  makeCopying,
  makeDocuments,
  makeDomException,
  makeFound,
  makeEncode,
  makeEncodePlain,
  makeEndings,
  makeEnvironment,
  makeFetch,
  makeFixedFormats,
  makeFixedTemporal,
  makeForm,
  makeFreeze,
  makeGlobals,
  makeGuard,
  makeHeaders,
  makeHeaderValues,
  makeInspect,
  makeKeeping,
  makeLoad,
  makeLog,
  makeMended,
  makeMutationDatabase,
  makeNewCall,
  makeOperations,
  makePairsReader,
  makeProceed,
  makeQueryDatabase,
  makeRandom,
  makeRandomStream,
  makeRangeBuilder,
  makeRangeText,
  makeReads,
  makeReadWorkspace,
  makeRejected,
  makeReplies,
  makeReport,
  makeRequest,
  makeResponse,
  makeRows,
  makeRun,
  makeRunOf,
  makeSearchParams,
  makeSending,
  makeSettle,
  makeStructuredClone,
  makeTelling,
  makeText,
  makeTimers,
  makeTrail,
  makeUrl,
  makeWrite,
  makeWriteLog,
}
export type Parts = typeof PARTS & { readonly engineNames: readonly EngineNames[] }

const BOUNDS = {
  batch: BATCH_MAX,
  depth: VALUE_DEPTH_MAX,
  entries: VALUE_ENTRIES_MAX,
  guestSeconds: GUEST_SECONDS_MAX,
  errorCharacters: ERROR_CHARACTERS_MAX,
  logCharacters: LOG_CHARACTERS_MAX,
  logLines: LOG_LINES_MAX,
  operationCharacters: OPERATION_CHARACTERS_MAX,
  pathCharacters: PATH_CHARACTERS_MAX,
  requestBytes: REQUEST_BYTES_MAX,
  requestHeadCharacters: REQUEST_HEAD_CHARACTERS_MAX,
  timersMax: TIMERS_MAX,
  toldCharacters: PIPELINED_CHARACTERS_MAX,
  toldMax: TOLD_MAX,
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
  ...['structuredClone', 'AbortController', 'AbortSignal', 'Headers', 'Request', 'Response'],
  'DOMException',
]
/** Of Actions. */
const ACTION_NAMES = ['fetch', 'setTimeout', 'setInterval', 'clearTimeout', 'clearInterval']

function globalNames(actions: boolean): readonly string[] {
  return actions ? [...GLOBAL_NAMES, ...ACTION_NAMES] : GLOBAL_NAMES
}

/** A script whose value is a function from a Bridge to a Realm. */
export function realmSource(limits: LoadLimits): string {
  const parts = Object.entries(PARTS).map(([name, part]) => `${name}: (${part})`)
  const names = globalNames(limits.actions)
  const bounds = JSON.stringify({ ...BOUNDS, ...limits, globalNames: names })
  const early = GLOBAL_NAMES.filter((name) => !ADDED.has(name)).join()
  return `(function (bridge) { 'use strict'
    const { ${early} } = globalThis
    const engineNames = [${OPEN.map(engineNamesSource)}]
    const parts = { engineNames, ${parts.join(',\n')} }
    return (${makeRealm})(parts, bridge, ${bounds})
  })`
}

const ARRAY_ITERATOR = Reflect.getPrototypeOf([].values())!
/** What is not frozen, in this realm: every realm has the same names. */
const OPEN = [Array, Array.prototype, ARRAY_ITERATOR]

/** A well-known symbol is described by the expression that it is the value of. */
function engineNamesSource(one: object): string {
  const keys = Reflect.ownKeys(one).map((key) =>
    typeof key === 'string' ? JSON.stringify(key) : key.description,
  )
  const kept = keys.map((key, i) => `v${i} = one[${key}]`)
  const same = keys.map((key, i) => `one[${key}] === v${i}`)
  return `{ count: ${keys.length}, keep(one) {
    const ${kept.join()}
    return () => ${same.join(' && ')}
  } }`
}

const ADDED = new Set([
  ...['TextDecoder', 'TextEncoder', 'URL', 'URLSearchParams', 'atob', 'btoa', 'crypto'],
  ...['globalThis', 'queueMicrotask', 'structuredClone', 'AbortController', 'AbortSignal'],
  ...['DOMException', 'Headers', 'Request', 'Response'],
])

/** The Workspace's script as a function; its first line stands on the second line of the text. */
export function scriptSource(source: string, { actions }: Pick<LoadLimits, 'actions'>): string {
  const parameters = ['__svc', ...globalNames(actions)].join()
  return `(function (${parameters}) { 'use strict'; return (function () {\n${source}\n})() })`
}

export type Bounds = typeof BOUNDS & LoadLimits & { readonly globalNames: readonly string[] }

export function makeRealm(parts: Parts, outer: Bridge, bounds: Bounds): Realm {
  const bridge = parts.makeBridge(outer)
  const calls = parts.makeCalls(parts.TransientMap, bridge)
  const inspect = parts.makeInspect()
  const write = parts.makeWriteLog(bounds.logLines, bounds.logCharacters, inspect)
  const trail = parts.makeTrail(bounds.pathCharacters)
  const { depth, entries } = bounds
  const plain = parts.makeEncodePlain(trail)
  const Rows = parts.makeRows(bounds.batch, parts.makeRangeText())
  const encode = parts.makeEncode(depth, entries, trail, plain, parts.makeDescribe(Rows))
  const decode = parts.makeDecode()
  const telling = parts.makeTelling(bridge, calls, bounds.toldCharacters)
  const endings = parts.makeEndings(bridge, calls, telling, bounds.resultBytes)
  const report = parts.makeReport(bounds, inspect, parts.makeMended())
  const owners = new WeakMap()
  const writes = { Write: parts.makeWrite(owners), owners }
  const sending = parts.makeSending(bridge, calls, telling, writes)
  const operations = parts.makeOperations(bridge, sending, bounds)
  const failures = new WeakMap()
  const replies = parts.makeReplies(calls, decode, failures)
  const documents = parts.makeDocuments(decode, parts.makeCopying(), bounds.batch)
  const found = parts.makeFound(calls, documents, replies)
  const clock = parts.makeClock(bridge, bounds.actions)
  const own = { calls, operations, endings, report, write, clock }
  parts.makeGlobals(parts, bridge, own, bounds)
  const keeping = parts.makeKeeping(parts.makeDefinitions())
  let dispatch: Realm['dispatch'] | null = null
  let restore: (() => string | null) | null = null

  function load(script: Script): void {
    const workspace = parts.makeLoad(parts.makeReadWorkspace(), bounds.globalNames)(script)
    const Builder = parts.makeRangeBuilder(encode)
    const Reads = parts.makeReads(workspace.tables, Rows, Builder)
    const Query = parts.makeQueryDatabase(Reads)
    const Mutation = parts.makeMutationDatabase(Reads, encode)
    const open = [Array, Array.prototype, Reflect.getPrototypeOf([].values())!]
    const Auth = parts.makeAuth(operations, bounds.guestSeconds)
    const Configuration = parts.makeConfiguration(operations)
    const classes = [Rows, Builder, Query, Mutation, Auth, Configuration, writes.Write]
    parts.makeFreeze(open)(classes)
    restore = parts.makeGuard(open, parts.engineNames, keeping)
    const log = (call: Call) => parts.makeLog(call, write)
    const runOf = parts.makeRunOf(operations, encode)
    const ctx = { Query, Mutation, Auth, Configuration, log, runOf, nowMicros: clock }
    const contextOf = parts.makeContext(operations, failures, ctx)
    const handled = { contextOf, documents, failures }
    const run = parts.makeRun(calls, { encode, decode }, operations, endings, report, handled)
    const frames = { documents, found, replies, endings, run }
    dispatch = parts.makeDispatch(bridge, calls, workspace, parts.makeNewCall(), frames)
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
    proceed: parts.makeProceed(calls),
    rejected: parts.makeRejected(bridge, calls, report),
    spentMicros(id) {
      const call = calls.active.get(id)
      return (call?.root ?? call)?.spentMicros ?? 0
    },
    settle: parts.makeSettle(calls, endings, report, bounds.cpuMillis * 1000, () => restore!()),
  }
}
