/**
 * The side of the main thread of the writing thread of the log. It sends one job at a time, in the
 * order of the calls. A thread that failed is not started again: the log is unavailable until the
 * server starts again, and every other part goes on.
 */

import type { LogJob, LogReply, LogResults } from './log-rows.ts'
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

export class LogThread {
  readonly #worker: Worker
  readonly #waiting: PendingJob[] = []
  #running: PendingJob | null = null
  /** Why no job is accepted any more; null while the thread runs. */
  #stopped: string | null = null

  constructor() {
    const url = URL.createObjectURL(new Blob([LOG_WRITER_SOURCE], { type: 'text/javascript' }))
    this.#worker = new Worker(url)
    this.#worker.onmessage = (event: MessageEvent<LogReply>) => this.#receive(event.data)
    this.#worker.onmessageerror = () => this.#stop('a message could not be read')
    this.#worker.onerror = (event) => {
      event.preventDefault()
      this.#stop(`the writing thread failed: ${event.message}`)
    }
    this.#worker.addEventListener('close', () => this.#stop('the writing thread ended'))
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

  #next(): void {
    if (this.#running !== null) return
    const next = this.#waiting.shift()
    if (next === undefined) return
    this.#running = next
    this.#worker.postMessage(next.job)
  }

  #receive(reply: LogReply): void {
    const finished = this.#running
    if (finished === null) return
    this.#running = null
    if ('result' in reply) finished.resolve(reply.result)
    else finished.reject(new LogFailure(reply.failure))
    this.#next()
  }

  #stop(reason: string): void {
    this.#stopped ??= reason
    const running = this.#running
    this.#running = null
    running?.reject(new LogFailure(reason))
    for (const pending of this.#waiting.splice(0)) pending.reject(new LogFailure(reason))
    this.#worker.terminate()
  }
}
