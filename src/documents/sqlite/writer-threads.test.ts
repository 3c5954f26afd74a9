import { describe, expect, test } from 'vitest'
import { fault } from '../../../testing/documents/store-suite.ts'
import { encodeBatch } from './batch-messages.ts'
import { WRITER_SOURCE } from './writer.generated.ts'
import type { WriterJob } from './writer-jobs.ts'
import { WriterThread } from './writer-threads.ts'

const COMMIT: WriterJob = { kind: 'commit', ...encodeBatch({ transactions: [] }) }
const PRUNE: WriterJob = { kind: 'prune', horizon: 0, operationsBeforeMicros: 0n, rowsMax: 1 }

/** A thread that replies to every job with the value of `body`, and that can be closed. */
function threadOf(body: string) {
  const failures: string[] = []
  const source = `let jobs = 0
    self.onmessage = ({ data }) => {
      jobs += 1
      self.postMessage(data.kind === 'close' ? { result: 0 } : ${body})
    }`
  const thread = new WriterThread({ source, onFailed: (detail) => failures.push(detail) })
  return { thread, failures }
}

describe('the main thread', () => {
  test('the main thread receives results in the order of the calls', async () => {
    const { thread } = threadOf('{ result: jobs }')
    const results = await Promise.all([1, 2, 3].map(() => thread.run(COMMIT)))
    expect(results).toEqual([1, 2, 3])
    await thread.close()
  })

  const deaths = {
    'an exception': "(() => { throw new TypeError('gone') })()",
    'the end of the thread': 'process.exit(3)',
  }
  for (const [name, body] of Object.entries(deaths)) {
    test(`the main thread reports only the running commit as uncertain after ${name}`, async () => {
      const { thread, failures } = threadOf(`jobs === 1 ? { result: 1 } : ${body}`)
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

  test('the first job of a thread that cannot start is rejected', async () => {
    const failures: string[] = []
    const source = 'this is not JavaScript'
    const thread = new WriterThread({ source, onFailed: (detail) => failures.push(detail) })
    await expect(
      thread.run({ kind: 'open', isTemporary: false, cacheMib: 1, path: '/' }),
    ).rejects.toEqual(fault('UNAVAILABLE'))
    expect(failures).toHaveLength(1)
    await thread.close()
  })

  test('a failure outside of a transaction is reported without source text', async () => {
    const failures: string[] = []
    const onFailed = (detail: string) => failures.push(detail)
    const thread = new WriterThread({ source: WRITER_SOURCE, onFailed })
    await expect(
      thread.run({ kind: 'open', isTemporary: false, cacheMib: 1, path: '/nonexistent/x' }),
    ).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      detail: 'documents: SQLITE_CANTOPEN: unable to open database file',
    })
    expect(failures).toHaveLength(1)
    await thread.close()
  })

  test('each outcome raises its fault', async () => {
    const failure = (outcome: string) => `{ failure: { outcome: '${outcome}', detail: 'd' } }`
    const transient = threadOf(failure('none'))
    await expect(transient.thread.run(COMMIT)).rejects.toEqual(fault('UNAVAILABLE'))
    await expect(transient.thread.run(COMMIT)).rejects.toEqual(fault('UNAVAILABLE'))
    expect(transient.failures).toEqual([])
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
    await transient.thread.close()
  })

  test('closing waits for the pending jobs', async () => {
    const { thread, failures } = threadOf('{ result: jobs }')
    const jobs = [thread.run(COMMIT), thread.run(COMMIT)]
    await thread.close()
    expect(await Promise.all(jobs)).toEqual([1, 2])
    await expect(thread.run(COMMIT)).rejects.toEqual(fault('UNAVAILABLE'))
    expect(failures).toEqual([])
  })
})
