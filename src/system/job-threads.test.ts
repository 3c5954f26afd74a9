import { afterEach, expect, test } from 'vitest'
import { JobThread, type JobThreadOptions, type PendingJob, startWorker } from './job-threads.ts'

type TestJob = { readonly kind: 'add' | 'exit' | 'fail' | 'close' }

interface TestResults {
  readonly add: number
  readonly exit: number
  readonly fail: number
  readonly close: number
}

/** A thread that replies with the number of its jobs so far. */
const SOURCE = `let jobs = 0
  self.onmessage = ({ data: { kind } }) => {
    jobs += 1
    if (kind === 'exit') process.exit(3)
    self.postMessage(kind === 'fail' ? { failure: 'no room' } : { result: jobs })
  }`

type Thread = JobThread<TestJob, TestResults, string>

const threads: Thread[] = []
afterEach(() => {
  for (const thread of threads.splice(0)) thread.stop('the test is over')
})

function openThread(options: Partial<JobThreadOptions<TestJob, string>> = {}): Thread {
  const thread: Thread = new JobThread<TestJob, TestResults, string>({
    createWorker: () => startWorker(SOURCE),
    onFailure: ({ kind }, failure) => new Error(`${kind}: ${failure}`),
    onStopped: (reason) => new Error(`stopped: ${reason}`),
    onEnded: (reason, interrupted) => {
      interrupted?.reject(new Error(`interrupted: ${reason}`))
      thread.stop(reason)
    },
    ...options,
  })
  threads.push(thread)
  return thread
}

const ADD: TestJob = { kind: 'add' }
const EXIT: TestJob = { kind: 'exit' }
const FAIL: TestJob = { kind: 'fail' }
const CLOSE: TestJob = { kind: 'close' }

async function outcomesOf(jobs: readonly Promise<unknown>[]): Promise<readonly unknown[]> {
  const settled = await Promise.allSettled(jobs)
  return settled.map((each) =>
    each.status === 'fulfilled' ? each.value : (each.reason as Error).message,
  )
}

test('jobs run in the order of the calls, also after one that failed', async () => {
  const thread = openThread()
  const jobs = [ADD, FAIL, ADD].map((job) => thread.run(job))
  expect(await outcomesOf(jobs)).toEqual([1, 'fail: no room', 3])
  expect(thread.stopped).toBeNull()
})

test('a job is not sent before the one before it has its result', async () => {
  const sent: string[] = []
  const createWorker = () => {
    const worker = startWorker(SOURCE)
    const post = worker.postMessage.bind(worker)
    worker.postMessage = (job: TestJob) => {
      sent.push(job.kind)
      post(job)
    }
    return worker
  }
  const thread = openThread({ createWorker })
  const first = thread.run(ADD)
  const second = thread.run(FAIL)
  expect(sent).toEqual(['add'])
  expect(await outcomesOf([first, second])).toEqual([1, 'fail: no room'])
  expect(sent).toEqual(['add', 'fail'])
})

test('the end of the thread rejects the running job and those that wait differently', async () => {
  const thread = openThread()
  const jobs = [ADD, EXIT, ADD].map((job) => thread.run(job))
  const reason = 'the writer thread ended'
  expect(await outcomesOf(jobs)).toEqual([1, `interrupted: ${reason}`, `stopped: ${reason}`])
  expect(thread.stopped).toBe(reason)
  expect(await outcomesOf([thread.run(ADD)])).toEqual([`stopped: ${reason}`])
})

test('a restarted thread runs its first job before those that wait', async () => {
  const order: string[] = []
  let interrupted: PendingJob<TestJob> | null = null
  const thread: Thread = openThread({
    onEnded: (_reason, running) => {
      interrupted = running
      thread.restart({
        job: ADD,
        resolve: (result) => order.push(`first: ${result}`),
        reject: () => {},
      })
    },
  })
  void thread.run(EXIT)
  order.push(`waiting: ${await thread.run(ADD)}`)
  expect(order).toEqual(['first: 1', 'waiting: 2'])
  expect(interrupted!.job).toBe(EXIT)
  expect(thread.stopped).toBeNull()
})

test('a closed thread has run the jobs that waited, and accepts no other', async () => {
  const thread = openThread()
  const waiting = [thread.run(ADD), thread.run(ADD)]
  const closed = thread.close(CLOSE, 'closed')
  expect(await outcomesOf([...waiting, thread.run(ADD)])).toEqual([1, 2, 'stopped: closed'])
  await closed
  expect(thread.stopped).toBe('closed')
})

test('a thread that ends while it closes rejects every job', async () => {
  const ends: string[] = []
  const thread: Thread = openThread({
    onEnded: (reason, interrupted) => {
      ends.push(reason)
      interrupted?.reject(new Error('interrupted'))
      thread.stop(reason)
    },
  })
  const waiting = [thread.run(EXIT), thread.run(ADD)]
  const closed = thread.close(CLOSE, 'closed')
  const stopped = 'stopped: the writer thread ended'
  expect(await outcomesOf([...waiting, closed])).toEqual(['interrupted', stopped, stopped])
  expect(ends).toEqual(['the writer thread ended'])
  expect(thread.stopped).toBe('closed')
})
