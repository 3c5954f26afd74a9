import { expect, test } from 'vitest'
import type { DevelopmentEvent } from '../../client/development/events.ts'
import { Fault } from '../../errors/fault.ts'
import type { TypeCheckInput, TypeCheckResult } from '../type-check/type-check.ts'
import { TypeReports } from './type-reports.ts'

const inputNamed = (name: string): TypeCheckInput => ({
  modules: [{ name, file: `functions/${name}.ts` }],
  description: { functions: [], tables: [] },
})

const resultOf = (...files: string[]): TypeCheckResult => ({
  problems: files.map((file) => ({ file, line: 1, column: 1, message: 'Wrong.', fix: null })),
  compiler: '6.0.0, embedded',
})

/** Starts reports of a checker whose results the test provides. */
function startReports() {
  const events: DevelopmentEvent[] = []
  const requests: {
    readonly name: string
    readonly answer: PromiseWithResolvers<TypeCheckResult>
  }[] = []
  const processes = { started: 0, closed: 0 }
  const reports = new TypeReports({
    directory: '/workspace',
    report: (event) => events.push(event),
    start: () => {
      processes.started++
      return {
        check: ({ modules }) => {
          const answer = Promise.withResolvers<TypeCheckResult>()
          requests.push({ name: modules[0]!.name, answer })
          return answer.promise
        },
        close: () => {
          processes.closed++
          for (const { answer } of requests) answer.reject(new Error('The process ended.'))
        },
      }
    },
  })
  const expectRequests = (count: number) => expect.poll(() => requests.length).toBe(count)
  return { reports, events, requests, expectRequests, processes }
}

test('only the newest save during a check is checked, by the same process', async () => {
  const { reports, requests, expectRequests, processes } = startReports()
  for (const name of ['first', 'second', 'third']) {
    reports.check(inputNamed(name))
    await expectRequests(1)
  }
  requests[0]!.answer.resolve(resultOf())
  await expectRequests(2)
  requests[1]!.answer.resolve(resultOf())
  await reports.close()
  expect(requests.map(({ name }) => name)).toEqual(['first', 'third'])
  expect(processes).toEqual({ started: 1, closed: 1 })
})

test('problems are reported when they change or are fixed', async () => {
  const { reports, events, requests, expectRequests } = startReports()
  const results = [resultOf(), resultOf('a.ts'), resultOf('a.ts'), resultOf('b.ts'), resultOf()]
  for (const [i, result] of results.entries()) {
    reports.check(inputNamed('notes'))
    await expectRequests(i + 1)
    requests[i]!.answer.resolve(result)
  }
  await reports.close()
  expect(events).toEqual([
    { event: 'types', details: ['a.ts:1:1\n  Wrong.'] },
    { event: 'types', details: ['b.ts:1:1\n  Wrong.'] },
    { event: 'types', details: [] },
  ])
})

test('a failed checker is reported and replaced, and a closed one is not', async () => {
  const { reports, events, requests, expectRequests, processes } = startReports()
  reports.check(inputNamed('notes'))
  await expectRequests(1)
  requests[0]!.answer.reject(new Fault('CLIENT_FAILED', { detail: 'The compiler is gone.' }))
  await expect.poll(() => events.length).toBe(1)
  reports.check(inputNamed('notes'))
  await expectRequests(2)
  await reports.close()
  expect(events).toEqual([
    { event: 'notice', message: 'Types were not checked. The compiler is gone.' },
  ])
  expect(processes).toEqual({ started: 2, closed: 2 })
})
