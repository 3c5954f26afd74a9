/**
 * The side of the main thread of the writing thread of the log. It sends one job at a time, in the
 * order of the calls. A thread that ended is started again a bounded number of times; the batch
 * that it was writing is in the file whole or not at all. After that the log is unavailable until
 * the server starts again, and every other part goes on.
 */

import type { LogJob, LogReply, LogResults, OpenLog } from './log-rows.ts'
import { LOG_WRITER_SOURCE } from './log-writer.generated.ts'

/** Why a job was not done: a code of SQLite or of the system, or a rule. */
export class LogFailure extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'LogFailure'
  }
}

interface PendingJob {
  readonly job: LogJob
  readonly resolve: (result: LogResults[keyof LogResults]) => void
  readonly reject: (failure: LogFailure) => void
}

export interface LogThreadOptions {
  /** Returns the job that opens the log. */
  readonly opening: () => OpenLog
  readonly monotonicMillis: () => number
  /** Called when the thread ended by itself. */
  readonly onEnded: (reason: string, isRestarted: boolean) => void
  readonly createWorker?: (() => Worker) | undefined
}

/** @limit Logs: restarts of the writing thread within an hour */
export const LOG_THREAD_RESTARTS_MAX = 5
const RESTARTS_MILLIS = 3_600_000

export function createLogWorker(): Worker {
  const url = URL.createObjectURL(new Blob([LOG_WRITER_SOURCE], { type: 'text/javascript' }))
  return new Worker(url)
}

export class LogThread {
  readonly #options: LogThreadOptions
  readonly #waiting: PendingJob[] = []
  #worker: Worker
  #running: PendingJob | null = null
  /** The batch whose thread ended before it replied. */
  #interrupted: PendingJob | null = null
  #wasOpened = false
  /** Monotonic milliseconds of the ends within the last hour. */
  #endedAt: readonly number[] = []
  #stopped: string | null = null

  constructor(options: LogThreadOptions) {
    this.#options = options
    this.#worker = this.#start()
  }

  /** Why no job is accepted any more; null while the thread runs. */
  get stopped(): string | null {
    return this.#stopped
  }

  /** Returns the sequence of the next record. Rejects with a LogFailure. */
  async open(): Promise<number> {
    const next = await this.run({ kind: 'open', ...this.#options.opening() })
    this.#wasOpened = true
    return next
  }

  /** Rejects with a LogFailure. */
  run<J extends LogJob>(job: J): Promise<LogResults[J['kind']]> {
    return new Promise((resolve, reject) => {
      if (this.#stopped !== null) {
        reject(new LogFailure(this.#stopped))
        return
      }
      // The result of a job has the type of its kind.
      this.#waiting.push({ job, resolve: resolve as PendingJob['resolve'], reject })
      this.#next()
    })
  }

  /** Waits for the pending jobs, then stops the thread. Rejects with a LogFailure. */
  async close(): Promise<void> {
    try {
      if (this.#stopped === null) await this.run({ kind: 'close' })
    } finally {
      this.#stop('the log is closed')
    }
  }

  #start(): Worker {
    const worker = (this.#options.createWorker ?? createLogWorker)()
    worker.onmessage = (event: MessageEvent<LogReply>) => this.#receive(worker, event.data)
    worker.onmessageerror = () => this.#ended(worker, 'a message could not be read')
    worker.onerror = (event) => {
      event.preventDefault()
      this.#ended(worker, `the writing thread failed: ${event.message}`)
    }
    worker.addEventListener('close', () => this.#ended(worker, 'the writing thread ended'))
    return worker
  }

  #next(): void {
    if (this.#running !== null) return
    const next = this.#waiting.shift()
    if (next === undefined) return
    this.#running = next
    this.#worker.postMessage(next.job)
  }

  #receive(worker: Worker, reply: LogReply): void {
    const finished = this.#running
    if (finished === null || worker !== this.#worker) return
    this.#running = null
    if ('result' in reply) finished.resolve(reply.result)
    else finished.reject(new LogFailure(reply.failure))
    this.#next()
  }

  #ended(worker: Worker, reason: string): void {
    if (worker !== this.#worker || this.#stopped !== null) return
    worker.terminate()
    const { onEnded, monotonicMillis } = this.#options
    const now = monotonicMillis()
    this.#endedAt = [...this.#endedAt.filter((at) => now - at < RESTARTS_MILLIS), now]
    const isRestarted = this.#wasOpened && this.#endedAt.length <= LOG_THREAD_RESTARTS_MAX
    if (isRestarted) this.#restart(reason)
    else this.#stop(reason)
    onEnded(reason, isRestarted)
  }

  /** Opens the log in a new thread, before the jobs that wait. */
  #restart(reason: string): void {
    const running = this.#running
    this.#running = null
    if (running?.job.kind === 'append') this.#interrupted = running
    else if (running?.job.kind !== 'open') running?.reject(new LogFailure(reason))
    const worker = this.#start()
    this.#worker = worker
    this.#waiting.unshift({
      job: { kind: 'open', ...this.#options.opening() },
      resolve: (next) => this.#settleInterrupted(next as number, reason),
      reject: ({ message }) => this.#ended(worker, `the log was not opened again: ${message}`),
    })
    this.#next()
  }

  /** A batch is one transaction: the file has all of its records or none. */
  #settleInterrupted(next: number, reason: string): void {
    const interrupted = this.#interrupted
    this.#interrupted = null
    if (interrupted?.job.kind !== 'append') return
    const { first, count } = interrupted.job
    const isWritten = first + count <= next
    if (isWritten) interrupted.resolve(null)
    else interrupted.reject(new LogFailure(reason))
  }

  #stop(reason: string): void {
    this.#stopped ??= reason
    const failure = new LogFailure(reason)
    this.#interrupted?.reject(failure)
    this.#interrupted = null
    const running = this.#running
    this.#running = null
    running?.reject(failure)
    for (const pending of this.#waiting.splice(0)) pending.reject(failure)
    this.#worker.terminate()
  }
}
