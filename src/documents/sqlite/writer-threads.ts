/**
 * The main thread's side of the writing thread: one job at a time, in the order of the calls, so
 * that it is known of every other job that it was not begun when the thread dies.
 */
import { Fault } from '../../errors/fault.ts'
import type { WriterAnswers, WriterFailure, WriterJob, WriterReply } from './writer-jobs.ts'

export interface WriterThreadOptions {
  /** JavaScript of the thread. */
  readonly source: string
  /** Called once, before any job is rejected for it: nothing can be written any more. */
  readonly onFailed: (detail: string) => void
}

interface PendingJob {
  readonly job: WriterJob
  readonly resolve: (answer: WriterAnswers[keyof WriterAnswers]) => void
  readonly reject: (fault: Fault) => void
}

export class WriterThread {
  readonly #worker: Worker
  readonly #onFailed: (detail: string) => void
  readonly #waiting: PendingJob[] = []
  #running: PendingJob | null = null
  #stopped: string | null = null

  constructor(options: WriterThreadOptions) {
    this.#onFailed = options.onFailed
    const url = URL.createObjectURL(new Blob([options.source], { type: 'text/javascript' }))
    this.#worker = new Worker(url)
    this.#worker.onmessage = (event: MessageEvent<WriterReply>) => this.#settle(event.data)
    this.#worker.onmessageerror = () => this.#die('the writing thread answered nonsense')
    this.#worker.onerror = (event) => {
      event.preventDefault()
      this.#die(`the writing thread failed: ${event.message}`)
    }
    this.#worker.addEventListener('close', () => this.#die('the writing thread ended'))
  }

  /** Faults: see `DocumentStore.commit`. After RESULT_UNCERTAIN and PRODUCT_CORRUPT it is dead. */
  run<J extends WriterJob>(job: J): Promise<WriterAnswers[J['kind']]> {
    return new Promise((resolve, reject) => {
      if (this.#stopped !== null) {
        reject(unavailable(this.#stopped))
        return
      }
      // The thread answers a job with the type of its kind.
      this.#waiting.push({ job, resolve: resolve as PendingJob['resolve'], reject })
      this.#next()
    })
  }

  /** Waits for the jobs that were handed in. */
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

  #settle(reply: WriterReply): void {
    const done = this.#running
    if (done === null) return
    this.#running = null
    if ('answer' in reply) {
      done.resolve(reply.answer)
    } else {
      const { failure } = reply
      if (failure.outcome === 'uncertain' || failure.outcome === 'corrupt') {
        this.#stop(failure.detail)
      }
      done.reject(faultOf(done.job, failure))
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
      // Only a commit has an outcome that somebody was promised.
      return job.kind === 'commit'
        ? new Fault('RESULT_UNCERTAIN', { detail: `documents: ${detail}` })
        : unavailable(detail)
    case 'none':
      return unavailable(detail)
  }
}

function unavailable(detail: string): Fault {
  return new Fault('UNAVAILABLE', { detail: `documents: ${detail}` })
}
