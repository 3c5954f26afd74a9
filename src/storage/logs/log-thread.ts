/**
 * The main-thread proxy of the writer thread of the log. A thread that ended is started again a
 * bounded number of times. After that the log is unavailable until the server restarts, and the
 * rest of the server keeps running.
 */
import { JobThread, type PendingJob, startWorker } from '../../system/job-threads.ts'
import type { LogJob, LogResults, OpenLog } from './log-rows.ts'
import { LOG_WRITER_SOURCE } from './log-writer.generated.ts'

/** The reason why a job was not done: a code of SQLite or of the system, or a rule. */
export class LogFailure extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'LogFailure'
  }
}

export interface LogThreadOptions {
  /** Returns the job that opens the log. */
  readonly opening: () => OpenLog
  readonly monotonicMillis: () => number
  /** Called when the thread ended by itself. */
  readonly onEnded: (reason: string, isRestarted: boolean) => void
  readonly createWorker?: (() => Worker) | undefined
}

/**
 * A thread may end because memory ran out for a moment, so it is restarted. A thread that keeps
 * ending would interrupt a batch each time, so the log becomes unavailable instead.
 * @limit Logs: restarts of the writer thread within an hour
 */
export const LOG_THREAD_RESTARTS_MAX = 5
const RESTARTS_MILLIS = 3_600_000

export function createLogWorker(): Worker {
  return startWorker(LOG_WRITER_SOURCE)
}

export class LogThread {
  readonly #options: LogThreadOptions
  readonly #thread: JobThread<LogJob, LogResults, string>
  /** The batch whose thread ended before it replied. */
  #interrupted: PendingJob<LogJob> | null = null
  #wasOpened = false
  /** Monotonic milliseconds of the ends within the last hour. */
  #endedAt: readonly number[] = []

  constructor(options: LogThreadOptions) {
    this.#options = options
    this.#thread = new JobThread<LogJob, LogResults, string>({
      createWorker: options.createWorker ?? createLogWorker,
      onFailure: (_job, reason) => new LogFailure(reason),
      onStopped: (reason) => new LogFailure(reason),
      onEnded: (reason, interrupted) => this.#restartOrStop(reason, interrupted),
    })
  }

  /** The reason why jobs are rejected; null while they are accepted. */
  get stopped(): string | null {
    return this.#thread.stopped
  }

  /** Returns the sequence of the next record. Rejects with a LogFailure. */
  async open(): Promise<number> {
    const next = await this.run({ kind: 'open', ...this.#options.opening() })
    this.#wasOpened = true
    return next
  }

  /** Rejects with a LogFailure. */
  run<J extends LogJob>(job: J): Promise<LogResults[J['kind']]> {
    return this.#thread.run(job)
  }

  /** Waits for the pending jobs, then stops the thread. Rejects with a LogFailure. */
  close(): Promise<void> {
    return this.#thread.close({ kind: 'close' }, 'the log is closed')
  }

  #restartOrStop(reason: string, interrupted: PendingJob<LogJob> | null): void {
    const { onEnded, monotonicMillis } = this.#options
    const now = monotonicMillis()
    this.#endedAt = [...this.#endedAt.filter((at) => now - at < RESTARTS_MILLIS), now]
    const isRestarted = this.#wasOpened && this.#endedAt.length <= LOG_THREAD_RESTARTS_MAX
    if (isRestarted) this.#restart(reason, interrupted)
    else this.#stop(reason, interrupted)
    onEnded(reason, isRestarted)
  }

  /** Opens the log in a new thread, before the jobs that wait. */
  #restart(reason: string, interrupted: PendingJob<LogJob> | null): void {
    if (interrupted?.job.kind === 'append') this.#interrupted = interrupted
    // The open job of a restart has no caller, and rejecting it would end the next thread.
    else if (interrupted?.job.kind !== 'open') interrupted?.reject(new LogFailure(reason))
    this.#thread.restart({
      job: { kind: 'open', ...this.#options.opening() },
      resolve: (next) => this.#completeInterrupted(next as number, reason),
      reject: ({ message }) => this.#thread.end(`the log was not opened again: ${message}`),
    })
  }

  /** Completes the interrupted batch. As one transaction, it is in the file whole or not at all. */
  #completeInterrupted(next: number, reason: string): void {
    const interrupted = this.#interrupted
    this.#interrupted = null
    if (interrupted?.job.kind !== 'append') return
    const { first, count } = interrupted.job
    const isWritten = first + count <= next
    if (isWritten) interrupted.resolve(null)
    else interrupted.reject(new LogFailure(reason))
  }

  #stop(reason: string, interrupted: PendingJob<LogJob> | null): void {
    this.#thread.stop(reason)
    const failure = new LogFailure(reason)
    this.#interrupted?.reject(failure)
    this.#interrupted = null
    interrupted?.reject(failure)
  }
}
