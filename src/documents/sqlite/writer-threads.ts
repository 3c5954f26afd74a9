/**
 * The side of the main thread of the writing thread. It sends one job at a time, in the order of
 * the calls, so that every other job has certainly not started when the thread dies.
 */
import { Fault } from '../../errors/fault.ts'
import { unavailable } from '../store-faults.ts'
import type { WriterFailure, WriterJob, WriterReply, WriterResults } from './writer-jobs.ts'

export interface WriterThreadOptions {
  /** JavaScript source of the thread. */
  readonly source: string
  /** Called once, before any job is rejected, when nothing can be written any more. */
  readonly onFailed: (detail: string) => void
}

interface PendingJob {
  readonly job: WriterJob
  readonly resolve: (result: WriterResults[keyof WriterResults]) => void
  readonly reject: (fault: Fault) => void
}

export class WriterThread {
  readonly #worker: Worker
  readonly #onFailed: (detail: string) => void
  readonly #waiting: PendingJob[] = []
  #running: PendingJob | null = null
  /** Why no job is accepted any more; null while the thread runs. */
  #stopped: string | null = null

  constructor(options: WriterThreadOptions) {
    this.#onFailed = options.onFailed
    const url = URL.createObjectURL(new Blob([options.source], { type: 'text/javascript' }))
    this.#worker = new Worker(url)
    this.#worker.onmessage = (event: MessageEvent<WriterReply>) => this.#receive(event.data)
    this.#worker.onmessageerror = () =>
      this.#die('the writing thread sent a message that cannot be read')
    this.#worker.onerror = (event) => {
      event.preventDefault()
      this.#die(`the writing thread failed: ${event.message}`)
    }
    this.#worker.addEventListener('close', () => this.#die('the writing thread ended'))
  }

  /**
   * Runs a job. Raises the faults of `DocumentStore.commit`; after RESULT_UNCERTAIN and
   * PRODUCT_CORRUPT the thread is stopped.
   */
  run<J extends WriterJob>(job: J): Promise<WriterResults[J['kind']]> {
    return new Promise((resolve, reject) => {
      if (this.#stopped !== null) {
        reject(unavailable(this.#stopped))
        return
      }
      // The result of a job has the type of its kind.
      this.#waiting.push({ job, resolve: resolve as PendingJob['resolve'], reject })
      this.#next()
    })
  }

  /** Waits for the pending jobs, then stops the thread. */
  async close(): Promise<void> {
    try {
      if (this.#stopped !== null) return
      const closed = this.run({ kind: 'close' })
      this.#stopped = 'the store is closed'
      await closed
    } finally {
      this.#worker.terminate()
    }
  }

  #next(): void {
    if (this.#running !== null) return
    const next = this.#waiting.shift()
    if (next === undefined) return
    this.#running = next
    this.#worker.postMessage(next.job)
  }

  #receive(reply: WriterReply): void {
    const finished = this.#running
    if (finished === null) return
    this.#running = null
    if ('result' in reply) {
      finished.resolve(reply.result)
    } else {
      const { failure } = reply
      if (failure.outcome === 'uncertain' || failure.outcome === 'corrupt') {
        this.#stop(failure.detail)
      }
      finished.reject(faultOf(finished.job, failure))
    }
    this.#next()
  }

  #die(detail: string): void {
    const running = this.#running
    this.#running = null
    this.#stop(detail)
    running?.reject(faultOf(running.job, { outcome: 'uncertain', detail }))
  }

  #stop(detail: string): void {
    if (this.#stopped === null) this.#onFailed(detail)
    this.#stopped ??= detail
    for (const pending of this.#waiting.splice(0)) pending.reject(unavailable(detail))
    this.#worker.terminate()
  }
}

function faultOf(job: WriterJob, { outcome, detail }: WriterFailure): Fault {
  switch (outcome) {
    case 'limit':
      return new Fault('LIMIT_EXCEEDED', { detail })
    case 'corrupt':
      return new Fault('PRODUCT_CORRUPT', { detail: `documents: ${detail}` })
    case 'uncertain':
      // Any other job can be repeated, so only that of a commit matters to the caller.
      return job.kind === 'commit'
        ? new Fault('RESULT_UNCERTAIN', { detail: `documents: ${detail}` })
        : unavailable(detail)
    case 'none':
      return unavailable(detail)
  }
}
