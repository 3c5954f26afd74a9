/**
 * The process that hosts the environments of one test process. It reads one line for each request,
 * and exits at the end of its input, so that nothing is left over if the test process dies.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRunnerPool, type RunnerPool } from '../../engine/runners/runner-pool.ts'
import { Fault, isFault, reasonText } from '../../errors/fault.ts'
import { runnerCommand } from '../../runner/command.ts'
import { runnerSpawner } from '../../runner/processes.ts'
import { isProcessRunning } from '../../system/processes.ts'
import { realSystem } from '../../system/system.ts'
import { createLog, type LogRecord } from '../../telemetry/log.ts'
import { Metrics } from '../../telemetry/metrics/metrics.ts'
import { readLines } from '../../test-kit/lines.ts'
import { parseStrictJson } from '../../value/strict-json.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { VERSION } from '../../value/version.ts'
import { parse } from '../../wire/reading/read.ts'
import {
  type OpenedEnvironment,
  type OpenRequest,
  type StubbedResponse,
  type TestFailure,
  type TestLogLine,
  type TestReply,
  TestRequest,
} from '../../wire/test-kit.ts'
import { toShapes } from '../codegen/shapes.ts'
import { toEvent } from '../local/log-events.ts'
import { type CallIds, TestEnvironment } from './test-environments.ts'
import { WorkspaceReleases } from './workspace-releases.ts'

const DIRECTORY = 'svc-test-'

/** Runs the host until its input ends. */
export async function runTestHost(): Promise<void> {
  // Ctrl-C reaches the test process too. Its exit closes the input, which stops this process.
  process.on('SIGINT', () => undefined)
  removeAbandoned()
  const directory = mkdtempSync(join(tmpdir(), `${DIRECTORY}${process.pid}-`))
  const host = new TestHost(directory, (line) => process.stdout.write(`${line}\n`))
  process.on('SIGTERM', () => process.exit(host.end()))
  const ended = new Promise((resolve) => process.stdin.on('end', resolve).on('error', resolve))
  readLines(process.stdin, (line) => host.receive(line))
  await ended
  process.exit(host.end())
}

/** Removes the files of hosts that were killed. */
function removeAbandoned(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = /^svc-test-([0-9]+)-/.exec(name)?.[1]
    if (pid === undefined || isProcessRunning(Number(pid))) continue
    try {
      rmSync(join(tmpdir(), name), { recursive: true, force: true })
    } catch {
      // The directory belongs to another user.
    }
  }
}

class TestHost {
  readonly #directory: string
  readonly #write: (line: string) => void
  readonly #pool: RunnerPool
  /** Resolves once the sandbox of the runners is determined. */
  readonly #started: Promise<unknown>
  readonly #releases: WorkspaceReleases
  readonly #environments = new Map<number, TestEnvironment>()
  readonly #pendingRequests = new Map<number, (response: StubbedResponse) => void>()
  /** The calls in progress, by request ID, with the stack trace of their failure. */
  readonly #calls = new Map<string, readonly string[]>()
  #environmentCount = 0
  #requestCount = 0

  constructor(directory: string, write: (line: string) => void) {
    this.#directory = directory
    this.#write = write
    const system = realSystem()
    const log = createLog({
      system,
      level: 'warn',
      sink: (line) => this.#record(0, '', JSON.parse(line) as LogRecord),
    })
    const spawn = runnerSpawner(runnerCommand())
    const limits = { fixedClock: true }
    const metrics = new Metrics(system)
    this.#pool = createRunnerPool({ system, log, metrics, spawn, size: 1, limits })
    this.#started = this.#pool.start({ sandbox: 'preferred' })
    // Each request that needs the pool reports the failure.
    this.#started.catch(() => undefined)
    this.#releases = new WorkspaceReleases(async (code) => {
      await this.#started
      return this.#pool.describe(code)
    })
    this.#send({ kind: 'hello', version: VERSION })
  }

  receive(line: string): void {
    let request: TestRequest
    try {
      request = parse(TestRequest, parseStrictJson(line))
    } catch (error) {
      process.stderr.write(`The test kit sent a malformed line: ${(error as Error).message}\n`)
      process.exit(1)
    }
    if (request.kind === 'fetched') {
      this.#pendingRequests.get(request.id)?.(request.response)
      this.#pendingRequests.delete(request.id)
    } else void this.#answer(request)
  }

  /** Stops the runners and removes all files. Returns the exit code. */
  end(): number {
    void this.#pool.close()
    rmSync(this.#directory, { recursive: true, force: true })
    return 0
  }

  async #answer(request: Exclude<TestRequest, { kind: 'fetched' }>): Promise<void> {
    const { id } = request
    if (request.kind === 'open') {
      await this.#reply(id, () => this.#open(request))
      return
    }
    const environment = this.#environments.get(request.environment)
    if (environment === undefined) {
      this.#fail(id, new Fault('UNAVAILABLE', { detail: 'the test environment is closed' }))
      return
    }
    if (request.kind === 'call' || request.kind === 'deliver') {
      const ids = environment.newIds(request)
      this.#calls.set(ids.requestId, [])
      const task =
        request.kind === 'call'
          ? () => environment.call(request, ids)
          : async () => JSON.stringify(await environment.deliver(request, ids))
      await this.#reply(id, task, { environment, ids })
      this.#calls.delete(ids.requestId)
    } else if (request.kind === 'close') {
      this.#environments.delete(request.environment)
      await this.#reply(id, async () => {
        await environment.close()
        return 'null'
      })
    } else {
      await this.#reply(
        id,
        async () => {
          if (request.kind === 'documents') return environment.documents(request.table)
          if (request.kind === 'migrate') {
            return JSON.stringify(await environment.migrate(request.name))
          }
          if (request.kind === 'scheduled') return JSON.stringify(await environment.scheduled())
          await environment.advance(request.millis, request.crons)
          return 'null'
        },
        { environment },
      )
    }
  }

  /** Sends the JSON text that the task returns, or the failure of the task. */
  async #reply(
    id: number,
    task: () => Promise<string>,
    call: { readonly environment?: TestEnvironment; readonly ids?: CallIds } = {},
  ): Promise<void> {
    try {
      const value = await task()
      const nowMicros = call.environment?.nowMicros ?? 0n
      this.#write(`{"kind":"done","id":${id},"nowMicros":"${nowMicros}","value":${value}}`)
    } catch (error) {
      this.#fail(id, error, call.ids)
    }
  }

  async #open(request: OpenRequest): Promise<string> {
    // The documents are opened while the Workspace is built.
    const release = this.#releases.load(request.workspace)
    const number = ++this.#environmentCount
    const environment = await TestEnvironment.open({
      request,
      release,
      pool: this.#pool,
      directory: this.#directory,
      ask: (sent) => {
        const { promise, resolve } = Promise.withResolvers<StubbedResponse>()
        const id = ++this.#requestCount
        this.#pendingRequests.set(id, resolve)
        this.#send({ kind: 'fetch', id, environment: number, request: sent })
        return promise
      },
      onRecord: (record) => this.#record(number, request.workspace, record),
    })
    this.#environments.set(number, environment)
    const { description } = environment.release
    const functions = description.functions.map(
      (each) => [each.name, { kind: each.kind, arguments: toShapes(each.arguments) }] as const,
    )
    const opened: OpenedEnvironment = {
      environment: number,
      functions: Object.fromEntries(functions),
    }
    return JSON.stringify(opened)
  }

  /** Keeps the failure of a call in progress, and sends other records that the author sees. */
  #record(environment: number, directory: string, record: LogRecord): void {
    const event = toEvent(record, directory)
    if (event === null) return
    const { requestId } = record
    if (event.event === 'failed') {
      const trace = [event.message, ...event.trace, ...event.codeFrame]
      if (typeof requestId === 'string' && this.#calls.has(requestId)) {
        this.#calls.set(requestId, trace)
        return
      }
      const line = { level: 'error', function: event.function, data: null } as const
      this.#send({ kind: 'log', environment, line: { ...line, message: trace.join('\n') } })
    } else if (event.event === 'log') {
      const { level, function: name, message, data } = event
      const line = { level: levelOf(level), function: name, message, data }
      this.#send({ kind: 'log', environment, line })
    } else if (event.event === 'notice') {
      const line = { level: 'warn', function: '', message: event.message, data: null } as const
      this.#send({ kind: 'log', environment, line })
    }
  }

  #fail(id: number, error: unknown, ids?: CallIds): void {
    const { requestId = null, operationId = null } = ids ?? {}
    const trace = requestId === null ? [] : (this.#calls.get(requestId) ?? [])
    this.#send({
      kind: 'failed',
      id,
      error: { ...failureOf(error), requestId, operationId, trace },
    })
  }

  #send(reply: TestReply): void {
    this.#write(JSON.stringify(reply))
  }
}

function failureOf(error: unknown): Pick<TestFailure, 'code' | 'message' | 'retryable'> {
  if (error instanceof ValidationError) {
    return { code: 'ARGUMENTS_INVALID', message: error.message, retryable: false }
  }
  if (!isFault(error)) {
    const message = error instanceof Error ? (error.stack ?? error.message) : 'unknown'
    return { code: 'INTERNAL', message, retryable: false }
  }
  const { code, message, retryable } = error
  const reason = reasonText(error)
  if (reason === null) return { code, message, retryable }
  const separator = reason.includes('\n') ? '\n' : ' '
  return { code, message: `${message}${separator}${reason}`, retryable }
}

function levelOf(level: string): TestLogLine['level'] {
  return level === 'debug' || level === 'info' || level === 'warn' ? level : 'error'
}
