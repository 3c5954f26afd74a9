import { beforeEach, expect, it } from 'vitest'
import { type FakeServer, failure } from '../../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../../testing/client/test-client.ts'

const TARGET = ['--target', 'channel:production', '--remote', '--root', 'root']
const FIGURE = { kind: 'query', cached: '0', rejected: '0', failed: '0' }
const FIGURES = {
  version: 1,
  releaseId: 'rel_01ARZ3NDEKTSV4RRFFQ69G5FAV',
  collectedAtMicros: '1800000060000000',
  sinceMicros: '1800000000000000',
  functions: [
    {
      ...FIGURE,
      name: 'notes.list',
      calls: '9007199254740993',
      failed: '3',
      p50Micros: '1234',
      p95Micros: '20480',
      p99Micros: '2500000',
    },
    {
      ...FIGURE,
      name: 'notes\u001b[2Jred\u202e',
      calls: '1',
      cached: '1',
      p50Micros: null,
      p95Micros: null,
      p99Micros: null,
    },
  ],
}

let server: FakeServer
let client: TestClient

beforeEach(async () => {
  ;({ server, client } = await linkedClient())
})

const stats = (...more: string[]) => client.run('functions', 'stats', ...TARGET, ...more)

it('svc functions stats shows each called Function; control characters are escaped', async () => {
  server.intercept = () => ({ status: 200, body: FIGURES })
  const { out, exit } = await stats()
  expect(exit).toBe(0)
  expect(out).toMatch(
    /^notes\.list +query +9007199254740993 +0 +0 +3 +1\.23 ms +20\.5 ms +2\.5 s$/m,
  )
  expect(out).toMatch(/^notes\S* +query +1 +1 +0 +0 +- +- +-$/m)
  expect(out).not.toMatch(/\u001b\[2J|\u202e/)
  const path = `${server.base}/metrics/functions?target=channel%3Aproduction`
  expect(server.requests.map((each) => each.path)).toEqual([path])
  expect(JSON.parse((await stats('--json')).out)).toEqual(FIGURES)
})

it('svc functions stats says when no Function was called', async () => {
  server.intercept = () => ({ status: 200, body: { ...FIGURES, functions: [] } })
  expect((await stats()).out).toContain('No Function was called.')
})

it('an older server is named with the version that is needed', async () => {
  server.intercept = () => failure('PLATFORM_NOT_FOUND')
  const { exit, err } = await stats()
  expect(exit).toBe(7)
  expect(err).toContain('This server has no figures of Functions: it is older than 0.5.0.')
  expect(err).toContain('Update the server to 0.5.0 or newer.')
})
