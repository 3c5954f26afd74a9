import { describe, expect, test } from 'vitest'
import { fault } from '../../../build/testing/documents/store-suite.ts'
import { encodeBatch } from './batch-messages.ts'
import { WRITER_SOURCE } from './writer.generated.ts'
import type { WriterJob } from './writer-jobs.ts'
import { WriterThread } from './writer-threads.ts'

const COMMIT: WriterJob = { kind: 'commit', ...encodeBatch({ transactions: [] }) }
const PRUNE: WriterJob = { kind: 'prune', horizon: 0, operationsBeforeMicros: 0n, rowsMax: 1 }

/** A thread that answers every job with what `body` evaluates to, and closes when told. */
function threadOf(body: string) {
  const failures: string[] = []
  const source = `let jobs = 0
    self.onmessage = ({ data }) => {
      jobs += 1
      self.postMessage(data.kind === 'close' ? { answer: 0 } : ${body})
    }`
  const thread = new WriterThread({ source, onFailed: (detail) => failures.push(detail) })
  return { thread, failures }
}

describe('the main side of the writing thread', () => {
  test('jobs are answered in the order of the calls', async () => {
    const { thread } = threadOf('{ answer: jobs }')
    const answers = await Promise.all([1, 2, 3].map(() => thread.run(COMMIT)))
    expect(answers).toEqual([1, 2, 3])
    await thread.close()
  })

  const deaths = {
    'an exception': "(() => { throw new TypeError('gone') })()",
    'the end of the thread': 'process.exit(3)',
  }
  for (const [name, body] of Object.entries(deaths)) {
    test(`${name} leaves the running commit uncertain and the waiting ones certain`, async () => {
      const { thread, failures } = threadOf(`jobs === 1 ? { answer: 1 } : ${body}`)
      const outcomes = await Promise.allSettled([1, 2, 3, 4].map(() => thread.run(COMMIT)))
      expect(outcomes.map((outcome) => outcome.status)).toEqual([
        'fulfilled',
        'rejected',
        'rejected',
        'rejected',
      ])
      const reasons = outcomes.slice(1).map((outcome) => (outcome as PromiseRejectedResult).reason)
      expect(reasons).toEqual([
        fault('RESULT_UNCERTAIN'),
        fault('UNAVAILABLE'),
        fault('UNAVAILABLE'),
      ])
      await expect(thread.run(COMMIT)).rejects.toEqual(fault('UNAVAILABLE'))
      expect(failures).toHaveLength(1)
      await thread.close()
    })
  }

  test('a thread that cannot start fails its first job', async () => {
    const failures: string[] = []
    const source = 'this is not JavaScript'
    const thread = new WriterThread({ source, onFailed: (detail) => failures.push(detail) })
    await expect(thread.run({ kind: 'open', path: '/' })).rejects.toEqual(fault('UNAVAILABLE'))
    expect(failures).toHaveLength(1)
    await thread.close()
  })

  test('what fails outside of a transaction is told without the source of the thread', async () => {
    const failures: string[] = []
    const onFailed = (detail: string) => failures.push(detail)
    const thread = new WriterThread({ source: WRITER_SOURCE, onFailed })
    await expect(thread.run({ kind: 'open', path: '/nonexistent/x' })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      detail: 'documents: SQLITE_CANTOPEN: unable to open database file',
    })
    expect(failures).toHaveLength(1)
    await thread.close()
  })

  test('a failure says what it left behind', async () => {
    const failure = (outcome: string) => `{ failure: { outcome: '${outcome}', detail: 'd' } }`
    const passing = threadOf(failure('none'))
    await expect(passing.thread.run(COMMIT)).rejects.toEqual(fault('UNAVAILABLE'))
    await expect(passing.thread.run(COMMIT)).rejects.toEqual(fault('UNAVAILABLE'))
    expect(passing.failures).toEqual([])
    await expect(threadOf(failure('limit')).thread.run(COMMIT)).rejects.toEqual(
      fault('LIMIT_EXCEEDED'),
    )
    for (const [outcome, job, code] of [
      ['uncertain', COMMIT, 'RESULT_UNCERTAIN'],
      ['uncertain', PRUNE, 'UNAVAILABLE'],
      ['corrupt', COMMIT, 'PRODUCT_CORRUPT'],
    ] as const) {
      const { thread, failures } = threadOf(failure(outcome))
      await expect(thread.run(job)).rejects.toEqual(fault(code))
      expect(failures).toEqual(['d'])
      await expect(thread.run(job)).rejects.toEqual(fault('UNAVAILABLE'))
    }
    await passing.thread.close()
  })

  test('closing waits for the jobs that were handed in', async () => {
    const { thread, failures } = threadOf('{ answer: jobs }')
    const jobs = [thread.run(COMMIT), thread.run(COMMIT)]
    await thread.close()
    expect(await Promise.all(jobs)).toEqual([1, 2])
    await expect(thread.run(COMMIT)).rejects.toEqual(fault('UNAVAILABLE'))
    expect(failures).toEqual([])
  })
})
