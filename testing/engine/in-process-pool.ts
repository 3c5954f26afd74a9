/**
 * A pool for tests of the engine itself: handlers run in this process, over the same operations
 * that a sandboxed runner sends.
 */
import { documentText } from '../../src/engine/calls/document-text.ts'
import { DECLARED_ERROR, OperationError } from '../../src/engine/calls/operation-error.ts'
import type {
  OperationResult,
  RunnerCall,
  RunnerHost,
  RunnerOutcome,
} from '../../src/engine/calls/outcomes.ts'
import type { RunnerPool } from '../../src/engine/runners/runner-pool.ts'
import { isFault } from '../../src/errors/fault.ts'
import type { Operation, RangeRequest } from '../../src/runner/protocol/operations.ts'
import type { FunctionKind } from '../../src/value/manifest.ts'

/** Stored JSON, parsed. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into documents of many shapes.
export type Loose = any

export interface TestContext {
  get(id: string): Promise<Loose>
  range(request: Partial<RangeRequest> & { table: string }): Promise<Loose>
  insert(table: string, fields: Loose): Promise<string>
  patch(id: string, fields: Loose, removed?: readonly string[]): Promise<void>
  replace(id: string, fields: Loose): Promise<void>
  delete(id: string): Promise<void>
  run(kind: FunctionKind, name: string, input?: Loose): Promise<Loose>
  usage(): Promise<Loose>
  issueGuest(seconds: number): Promise<string>
  /** The caller. Reading it is recorded. */
  identity(): Loose
  send(operation: Operation): Promise<Loose>
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
    statistics: () => ({
      containment: null,
      releases: 1,
      runners: 0,
      transactionRunners: 0,
      actionRunners: 0,
      inFlight: 0,
      recentBreakdowns: 0,
      failedStarts: 0,
    }),
    actionBacklogBytes: () => 0,
    usage: () => ({ cpuMicros: 0, residentBytes: 0 }),
    get calls() {
      return calls
    },
    async invoke(code: unknown, call: RunnerCall, host: RunnerHost): Promise<RunnerOutcome> {
      calls += 1
      const usage = {
        usedClock: false,
        usedRandom: false,
        usedIdentity: false,
        cpuMicros: 0,
        logs: [],
      }
      const part = (of: RunnerCall, by: RunnerHost) => pool.invoke(code, of, by)
      const context: TestContext = {
        ...contextOf(async (operation) => looseOf(await host.operation(operation, part))),
        identity() {
          usage.usedIdentity = true
          return JSON.parse(call.identityText)
        },
      }
      try {
        const input = JSON.parse(call.argumentsText) as Loose
        const result = (await handlers[call.function]!(context, input, call)) ?? null
        if (pool.loseNext > 0) {
          pool.loseNext -= 1
          return { kind: 'lost' }
        }
        return { kind: 'returned', result, documents: [], ...usage }
      } catch (error) {
        if (error instanceof DeclaredFailure) return { kind: 'failed', code: error.code, ...usage }
        // Any other error ends the call of a real runner, which reports it to the host.
        if (isFault(error)) throw error
        if (error instanceof OperationError && error.name === DECLARED_ERROR) {
          return { kind: 'failed', code: error.code!, ...usage }
        }
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

function looseOf(answer: OperationResult): Loose {
  if (typeof answer === 'string') return JSON.parse(answer)
  const documents = answer.documents.map((document) => JSON.parse(documentText(document)))
  return answer.page === null ? (documents[0] ?? null) : { documents, ...answer.page }
}

function contextOf(send: (operation: Operation) => Promise<Loose>): Omit<TestContext, 'identity'> {
  return {
    get: (id) => send(['get', id]),
    range: (request) =>
      send([
        'range',
        { index: null, equal: [], order: 'asc', limit: 100, next: 'plain', ...request },
      ]),
    insert: (table, fields) => send(['insert', table, fields]),
    patch: (id, fields, removed = []) => send(['patch', id, fields, removed]),
    replace: (id, fields) => send(['replace', id, fields]),
    delete: (id) => send(['delete', id]),
    run: (kind, name, input = {}) => send(['run', kind, name, input]),
    usage: () => send(['usage']),
    issueGuest: (seconds) => send(['issueGuest', seconds]),
    send,
  }
}
