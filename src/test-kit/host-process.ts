/** Starts the process that hosts the environments, and exchanges lines with it. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { CallError } from '../app-client/errors.ts'
import { VERSION } from '../value/version.ts'
import type {
  StubbedRequest,
  StubbedResponse,
  TestFailure,
  TestLogLine,
  TestReply,
} from '../wire/test-kit.ts'
import { TEST_HOST_ARGUMENT } from './argument.ts'
import { readLines } from './lines.ts'
import { executable, notStarted } from './process-settings.ts'

/** The part of an environment that handles messages of the host. */
export interface HostedEnvironment {
  fetched(request: StubbedRequest): Promise<StubbedResponse>
  logged(line: TestLogLine): void
}

export interface Done {
  readonly nowMicros: bigint
  readonly value: unknown
}

interface PendingRequest {
  readonly environment: HostedEnvironment
  readonly resolve: (done: Done) => void
  readonly reject: (error: Error) => void
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>

const ERROR_OUTPUT_CHARACTERS = 4_096

/** Returns an error of the kit itself. */
export function kitError(message: string, cause?: unknown): CallError {
  return new CallError('CLIENT_FAILED', message, { cause })
}

export class HostProcess {
  readonly #child: Child
  readonly #pending = new Map<number, PendingRequest>()
  readonly #environments = new Map<number, HostedEnvironment>()
  #requests = 0
  #hasGreeted = false
  #errorOutput = ''
  /** The failure after which nothing can be sent; null while the process runs. */
  #failure: CallError | null = null

  constructor() {
    const program = executable()
    const child = spawn(program, [TEST_HOST_ARGUMENT], { stdio: ['pipe', 'pipe', 'pipe'] })
    this.#child = child
    child.on('error', (error) => this.#end(kitError(notStarted(program, error), error)))
    // Waits for the end of the output instead of the exit, since lines may be left to read.
    child.on('close', () => this.#end(kitError(this.#endMessage(program))))
    child.stdin.on('error', () => undefined)
    child.stderr.on('data', (chunk: Buffer) => {
      this.#errorOutput = (this.#errorOutput + chunk).slice(-ERROR_OUTPUT_CHARACTERS)
    })
    readLines(child.stdout, (line) => this.#receive(JSON.parse(line) as TestReply))
    this.#keepAlive(false)
  }

  get hasEnded(): boolean {
    return this.#failure !== null
  }

  /** Sends a request with a new number. Rejects with CallError. */
  request(environment: HostedEnvironment, request: object): Promise<Done> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== null) {
        reject(this.#failure)
        return
      }
      const id = ++this.#requests
      if (this.#pending.size === 0) this.#keepAlive(true)
      this.#pending.set(id, { environment, resolve, reject })
      this.#send({ ...request, id })
    })
  }

  /** Registers an environment that the host has opened, under its number. */
  add(number: number, environment: HostedEnvironment): void {
    this.#environments.set(number, environment)
  }

  remove(number: number): void {
    this.#environments.delete(number)
  }

  #receive(reply: TestReply): void {
    switch (reply.kind) {
      case 'hello':
        this.#hasGreeted = true
        if (reply.version === VERSION) return
        this.#end(
          kitError(
            `_generated is of svc ${VERSION}, but svc is ${reply.version}: run svc codegen.`,
          ),
        )
        this.#child.kill()
        return
      case 'done':
        this.#take(reply.id)?.resolve({ nowMicros: BigInt(reply.nowMicros), value: reply.value })
        return
      case 'failed':
        this.#take(reply.id)?.reject(errorOf(reply.error))
        return
      case 'log':
        this.#log(reply.environment, reply.line)
        return
      case 'fetch':
        void this.#fetch(reply)
    }
  }

  /** Passes a message of the host to all environments, and one of an environment to that one. */
  #log(number: number, line: TestLogLine): void {
    if (number !== 0) this.#environments.get(number)?.logged(line)
    else for (const environment of this.#environments.values()) environment.logged(line)
  }

  async #fetch({ id, environment, request }: Extract<TestReply, { kind: 'fetch' }>): Promise<void> {
    const opened = this.#environments.get(environment)
    const response = (await opened?.fetched(request)) ?? { failure: 'the environment was closed' }
    this.#send({ kind: 'fetched', id, response })
  }

  #take(id: number): PendingRequest | undefined {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    if (this.#pending.size === 0) this.#keepAlive(false)
    return pending
  }

  #send(message: object): void {
    if (this.#failure === null) this.#child.stdin.write(`${JSON.stringify(message)}\n`)
  }

  #end(failure: CallError): void {
    if (this.#failure !== null) return
    this.#failure = failure
    for (const { reject } of this.#pending.values()) reject(failure)
    this.#pending.clear()
  }

  #endMessage(program: string): string {
    const output = this.#errorOutput.trim()
    const reason = output === '' ? '' : ` Its output was:\n${output}`
    if (this.#hasGreeted) return `${program} ended unexpectedly.${reason}`
    return `${program} cannot host tests: is it the svc that wrote _generated, ${VERSION}?${reason}`
  }

  /** Lets this process exit while no request is pending, although the host still runs. */
  #keepAlive(isPending: boolean): void {
    const { stdin, stdout, stderr } = this.#child
    for (const handle of [this.#child, stdin, stdout, stderr] as readonly Partial<Handle>[]) {
      if (isPending) handle.ref?.()
      else handle.unref?.()
    }
  }
}

/** A handle that may keep this process running. The pipes of a child process are sockets. */
interface Handle {
  ref(): void
  unref(): void
}

function errorOf({ code, message, trace, ...details }: TestFailure): CallError {
  const [reason] = trace
  if (reason === undefined) return new CallError(code, `${code}: ${message}`, details)
  const cause = new Error(reason)
  cause.stack = trace.join('\n')
  const text = message.includes(reason) ? message : `${message} ${reason}`
  return new CallError(code, `${code}: ${text}`, { ...details, cause })
}
