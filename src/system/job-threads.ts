/**
 * The queue of jobs for a writer thread. It sends one job at a time, in the order of the calls, so
 * that no waiting job has had an effect when the thread ends.
 */

export interface Job {
  readonly kind: string
}

/** The result of each kind of job. */
export type ResultsOf<J extends Job> = { readonly [K in J['kind']]: unknown }

/** Message of the thread after each job. */
export type JobReply<Result, Failure> = { readonly result: Result } | { readonly failure: Failure }

export interface PendingJob<J extends Job> {
  readonly job: J
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

export interface JobThreadOptions<J extends Job, Failure> {
  readonly createWorker: () => Worker
  /** Returns the error of a job that the thread replied to with a failure. */
  readonly onFailure: (job: J, failure: Failure) => Error
  /** Returns the error of a job that was not done because the thread was stopped. */
  readonly onStopped: (reason: string) => Error
  /**
   * Called when the thread ended by itself. It either calls `stop` or `restart`, and completes
   * `interrupted`, the job that the thread was running.
   */
  readonly onEnded: (reason: string, interrupted: PendingJob<J> | null) => void
}

/** Starts a worker from JavaScript source. */
export function startWorker(source: string): Worker {
  return new Worker(URL.createObjectURL(new Blob([source], { type: 'text/javascript' })))
}

export class JobThread<J extends Job, R extends ResultsOf<J>, Failure> {
  readonly #options: JobThreadOptions<J, Failure>
  readonly #waiting: PendingJob<J>[] = []
  /** Null once it was terminated. */
  #worker: Worker | null
  #running: PendingJob<J> | null = null
  #stopped: string | null = null

  constructor(options: JobThreadOptions<J, Failure>) {
    this.#options = options
    this.#worker = this.#start()
  }

  /** The reason why jobs are rejected; null while they are accepted. */
  get stopped(): string | null {
    return this.#stopped
  }

  /** Runs a job after those that wait. Rejects with the errors of the options. */
  run<K extends J>(job: K): Promise<R[K['kind']]> {
    return new Promise((resolve, reject) => {
      if (this.#stopped !== null) {
        reject(this.#options.onStopped(this.#stopped))
        return
      }
      // The result of a job has the type of its kind.
      this.#waiting.push({ job, resolve: resolve as PendingJob<J>['resolve'], reject })
      this.#sendNext()
    })
  }

  /** Runs `last` after the jobs that wait and accepts no further ones, then stops the thread. */
  async close(last: J, reason: string): Promise<void> {
    try {
      if (this.#stopped !== null) return
      const closed = this.run(last)
      this.#stopped = reason
      await closed
    } finally {
      this.stop(reason)
    }
  }

  /** Terminates the thread and rejects the jobs that wait. */
  stop(reason: string): void {
    this.#stopped ??= reason
    this.#worker?.terminate()
    this.#worker = null
    const rejected = this.#waiting.splice(0)
    if (this.#running !== null) rejected.unshift(this.#running)
    this.#running = null
    for (const { reject } of rejected) reject(this.#options.onStopped(reason))
  }

  /** Starts a new worker, which runs `first` before the jobs that wait. */
  restart(first: PendingJob<J>): void {
    this.#worker?.terminate()
    this.#running = null
    this.#worker = this.#start()
    this.#waiting.unshift(first)
    this.#sendNext()
  }

  /** Terminates the worker as one that cannot be used, and calls `onEnded`. */
  end(reason: string): void {
    if (this.#worker === null) return
    this.#worker.terminate()
    // Its events come later and belong to no job of the next worker.
    this.#worker = null
    const interrupted = this.#running
    this.#running = null
    this.#options.onEnded(reason, interrupted)
  }

  #start(): Worker {
    const worker = this.#options.createWorker()
    const end = (reason: string): void => {
      if (worker === this.#worker) this.end(reason)
    }
    worker.onmessage = (event: MessageEvent<JobReply<R[J['kind']], Failure>>) => {
      if (worker === this.#worker) this.#receive(event.data)
    }
    worker.onmessageerror = () => end('the writer thread sent a message that cannot be read')
    worker.onerror = (event) => {
      event.preventDefault()
      end(`the writer thread failed: ${event.message}`)
    }
    worker.addEventListener('close', () => end('the writer thread ended'))
    return worker
  }

  #sendNext(): void {
    if (this.#running !== null || this.#worker === null) return
    const next = this.#waiting.shift()
    if (next === undefined) return
    this.#running = next
    this.#worker.postMessage(next.job)
  }

  #receive(reply: JobReply<R[J['kind']], Failure>): void {
    const finished = this.#running
    if (finished === null) return
    this.#running = null
    if ('result' in reply) finished.resolve(reply.result)
    else finished.reject(this.#options.onFailure(finished.job, reply.failure))
    this.#sendNext()
  }
}
