/**
 * A pool for tests of the engine itself: handlers run in this process, over the same operations
 * that a sandboxed runner sends.
 */
import type { Operation, RangeRequest } from '../runner/messages.ts'
import type { RunnerCall, RunnerHost, RunnerOutcome, RunnerPool } from './runner-pool.ts'

/** Stored JSON as JSON.parse makes it. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into documents of many shapes.
export type Loose = any

export interface TestContext {
  get(id: string): Promise<Loose>
  range(request: Partial<RangeRequest> & { table: string }): Promise<Loose>
  insert(table: string, fields: Loose): Promise<string>
  patch(id: string, fields: Loose, removed?: readonly string[]): Promise<void>
  replace(id: string, fields: Loose): Promise<void>
  delete(id: string): Promise<void>
}

export type TestHandler = (context: TestContext, input: Loose, call: RunnerCall) => unknown

export interface InProcessPool extends RunnerPool {
  /** Calls that ended in this many `lost` outcomes first. */
  loseNext: number
  readonly calls: number
}

export function inProcessPool(handlers: Readonly<Record<string, TestHandler>>): InProcessPool {
  let calls = 0
  const pool = {
    loseNext: 0,
    get calls() {
      return calls
    },
    async invoke(_: unknown, call: RunnerCall, host: RunnerHost): Promise<RunnerOutcome> {
      calls += 1
      const usage = { usedClock: false, usedRandom: false, cpuMicros: 0, logs: [] }
      const context = contextOf(
        async (operation) => JSON.parse(await host.operation(operation)) as Loose,
      )
      try {
        const input = JSON.parse(call.argumentsText) as Loose
        const result = (await handlers[call.function]!(context, input, call)) ?? null
        if (pool.loseNext > 0) {
          pool.loseNext -= 1
          return { kind: 'lost' }
        }
        return { kind: 'returned', result, ...usage }
      } catch (error) {
        if (error instanceof DeclaredFailure) return { kind: 'failed', code: error.code, ...usage }
        const { name, message, stack } = error as Error
        return { kind: 'threw', error: { name, message, stack: stack ?? '' }, ...usage }
      }
    },
  }
  return pool as unknown as InProcessPool
}

export class DeclaredFailure extends Error {
  readonly code: string

  constructor(code: string) {
    super(code)
    this.code = code
  }
}

function contextOf(send: (operation: Operation) => Promise<Loose>): TestContext {
  return {
    get: (id) => send(['get', id]),
    range: (request) =>
      send([
        'range',
        { index: null, equal: [], order: 'asc', limit: 100, paginate: false, ...request },
      ]),
    insert: (table, fields) => send(['insert', table, fields]),
    patch: (id, fields, removed = []) => send(['patch', id, fields, removed]),
    replace: (id, fields) => send(['replace', id, fields]),
    delete: (id) => send(['delete', id]),
  }
}
