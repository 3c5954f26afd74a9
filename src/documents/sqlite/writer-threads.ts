/** The main-thread proxy of the writer thread of a document file. */
import { Fault } from '../../errors/fault.ts'
import { JobThread, startWorker } from '../../system/job-threads.ts'
import { unavailable } from '../store-faults.ts'
import type { WriterFailure, WriterJob, WriterResults } from './writer-jobs.ts'

export interface WriterThreadOptions {
  /** JavaScript source of the thread. */
  readonly source: string
  /** Called once, before any job is rejected, when the thread is stopped after a failure. */
  readonly onFailed: (detail: string) => void
}

export class WriterThread {
  readonly #thread: JobThread<WriterJob, WriterResults, WriterFailure>
  readonly #onFailed: (detail: string) => void

  constructor({ source, onFailed }: WriterThreadOptions) {
    this.#onFailed = onFailed
    this.#thread = new JobThread<WriterJob, WriterResults, WriterFailure>({
      createWorker: () => startWorker(source),
      onStopped: unavailable,
      onFailure: (job, failure) => {
        const { outcome, detail } = failure
        if (outcome === 'uncertain' || outcome === 'corrupt') this.#stop(detail)
        return faultOf(job, failure)
      },
      // A new thread would not know whether the interrupted commit is durable, so none is started.
      onEnded: (detail, interrupted) => {
        this.#stop(detail)
        interrupted?.reject(faultOf(interrupted.job, { outcome: 'uncertain', detail }))
      },
    })
  }

  /**
   * Runs a job. Raises the faults of `DocumentStore.commit`; after RESULT_UNCERTAIN and
   * PRODUCT_CORRUPT the thread is stopped.
   */
  run<J extends WriterJob>(job: J): Promise<WriterResults[J['kind']]> {
    return this.#thread.run(job)
  }

  /** Waits for the pending jobs, then stops the thread. */
  close(): Promise<void> {
    return this.#thread.close({ kind: 'close' }, 'the store is closed')
  }

  #stop(detail: string): void {
    if (this.#thread.stopped === null) this.#onFailed(detail)
    this.#thread.stop(detail)
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
