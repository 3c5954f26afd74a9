/** A real runner pool for tests, and Releases whose Functions are given as source text. */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { StoredDocument } from '../src/documents/store.ts'
import type { OperationResult, RunnerCall, RunnerHost } from '../src/engine/calls/outcomes.ts'
import type { ReleaseCode } from '../src/engine/releases/executable-release.ts'
import {
  createRunnerPool,
  type PoolLimits,
  type RunnerPool,
} from '../src/engine/runners/runner-pool.ts'
import { runnerCommand } from '../src/runner/command.ts'
import { runnerSpawner } from '../src/runner/processes.ts'
import type { Operation } from '../src/runner/protocol/operations.ts'
import { realSystem } from '../src/system/system.ts'
import { type MemoryLog, memoryLog } from '../src/telemetry/log.ts'
import { Metrics } from '../src/telemetry/metrics/metrics.ts'
import type { FunctionKind } from '../src/value/manifest.ts'

export interface PoolBench {
  readonly pool: RunnerPool
  readonly log: MemoryLog
  readonly metrics: Metrics
  release(functions: string, schema?: string): ReleaseCode
  call(name: string, options?: CallOptions): RunnerCall
}

export interface CallOptions {
  readonly kind?: FunctionKind
  readonly argumentsText?: string
  readonly seedByte?: number
  readonly millis?: number
  /** Documents that a speculative call receives; absent for a synchronous call. */
  readonly prefetched?: readonly StoredDocument[]
}

const system = realSystem()

export function poolBench(
  options: {
    command?: readonly string[]
    size?: number
    limits?: Partial<PoolLimits>
    /** Called with the ID of each process of a runner, right after its start. */
    onSpawn?: (pid: number) => void
  } = {},
): PoolBench {
  const log = memoryLog()
  const metrics = new Metrics(system)
  const { command = runnerCommand(), size = 1, limits = {}, onSpawn } = options
  const start = runnerSpawner(command)
  const spawn: typeof start = (...given) => {
    const runner = start(...given)
    onSpawn?.(runner.pid)
    return runner
  }
  const pool = createRunnerPool({ system, log: log.log, metrics, spawn, size, limits })
  return { pool, log, metrics, release: releaseOf, call: callOf }
}

/** `functions` are members of an object literal: `list: query(async (ctx, input) => ...),`. */
export function scriptOf(functions: string, schema = 'null', migrations = '{}'): string {
  return `const make = (kind) => (handler, rest = {}) => ({
    [Symbol.for('svc.function')]: {
      kind, handler, visibility: 'public', clients: ['public'], auth: 'none',
      arguments: {}, returns: { type: 'any' }, errors: {}, ...rest,
      ...(kind === 'action' && { uses: { network: [], secrets: [], ...rest.uses } }),
    },
  });
const query = make('query'), mutation = make('mutation'), action = make('action');
const ref = (kind, name) => ({ kind, name: 'f.' + name });
const tables = (tables) => ({ [Symbol.for('svc.schema')]: { tables } });
const migrations = { [Symbol.for('svc.migrations')]: {
  migrations: Object.entries(${migrations}).map(([name, content]) => ({
    name, index: null, batch: 500, ...content,
  })),
  requires: [],
} };
__svc.define({ schema: ${schema}, migrations, modules: { f: {
${functions}
} } });
`
}

function releaseOf(functions: string, schema?: string): ReleaseCode {
  return { releaseId: system.ids.make('rel'), source: scriptOf(functions, schema), sourceMap: null }
}

function callOf(name: string, options: CallOptions = {}): RunnerCall {
  const {
    kind = 'query',
    argumentsText = '{}',
    seedByte = 1,
    millis = 100_000,
    prefetched,
  } = options
  return {
    function: `f.${name}`,
    kind,
    argumentsText,
    identityText: 'null',
    nowMicros: 1_800_000_000_000_000n,
    seed: new Uint8Array(32).fill(seedByte).toHex(),
    deadline: system.monotonicMillis() + millis,
    ...(prefetched !== undefined && { prefetched }),
  }
}

/** Sends a signal to each runner of this process. */
export function killRunners(signal: 'SIGKILL' | 'SIGSTOP' = 'SIGKILL'): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
      if (Number(fields[1]) !== process.pid) continue
      // Files that share this process may need its other children, such as the bundler.
      const isRunner = readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('__runner')
      if (isRunner) process.kill(Number(pid), signal)
    } catch {
      // The process has ended in the meantime.
    }
  }
}

export const DOCUMENT =
  '{"_createdAt":{"$t":"1"},"_id":{"$d":"notes_01ARZ3NDEKTSV4RRFFQ69G5FAV"},"_revision":{"$i":"3"}}'

/** Responds to every operation with one document, or an ID. */
export const oneDocument: RunnerHost = {
  operation: ([type]) =>
    type === 'range'
      ? `{"documents":[${DOCUMENT}],"done":true,"cursor":null}`
      : type === 'insert'
        ? '"notes_01ARZ3NDEKTSV4RRFFQ69G5FAV"'
        : type === 'get'
          ? DOCUMENT
          : 'null',
}

export type Answering = (operation: Operation) => OperationResult | Promise<OperationResult>

/** Records the operations that it is sent. */
export function recordingHost(answering: Answering): RunnerHost & { readonly seen: Operation[] } {
  const seen: Operation[] = []
  return {
    seen,
    operation(operation) {
      seen.push(operation)
      return answering(operation)
    },
  }
}

/** Delays all responses until they are released, or fails them. */
export function heldHost(answering: Answering) {
  const { promise, resolve: letGo, reject: fail } = Promise.withResolvers<void>()
  const host = recordingHost(async (operation) => {
    await promise
    return answering(operation)
  })
  /** Waits until `count` operations were sent. */
  const received = async (count: number): Promise<void> => {
    while (host.seen.length < count) await delay(1)
  }
  return { host, received, letGo, fail }
}
