import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { APPLICATION_KEY, type FakeServer } from '../../../../testing/client/fake-server.ts'
import { linkedCaller } from '../../../../testing/client/linked-client.ts'
import type { TestClient } from '../../../../testing/client/test-client.ts'

const DOCUMENT = {
  openapi: '3.1.1',
  info: { title: 'Functions' },
  paths: { '/v1/functions/a.b': {} },
}

let server: FakeServer
let client: TestClient
beforeEach(async () => {
  ;({ server, client } = await linkedCaller([]))
  server.intercept = ({ path }) => {
    return path.startsWith('/v1/functions/') ? { status: 200, body: DOCUMENT } : null
  }
})

function openapi(...more: string[]) {
  const where = ['--remote', '--root', 'root', '--url', server.origin, '--key-env', 'APP_KEY']
  return client.run('openapi', ...where, '--target', 'channel:production', ...more)
}

test('the document of the key and the target is printed', async () => {
  expect(JSON.parse((await openapi()).out)).toEqual(DOCUMENT)
  expect(JSON.parse((await openapi('--json')).out)).toEqual(DOCUMENT)
  const [request] = server.requests.filter(({ path }) => path.startsWith('/v1/functions/'))
  expect(request!.path).toBe('/v1/functions/openapi.json?target=channel%3Aproduction')
  expect(request!.headers['x-service-key']).toBe(APPLICATION_KEY)
})

test('a file has the document, and a second run replaces it', async () => {
  for (let i = 0; i < 2; i++) {
    const { exit, out } = await openapi('--out', 'functions.json')
    expect([exit, out]).toEqual([
      0,
      expect.stringMatching(/^Wrote .*functions\.json: 1 Functions\./),
    ])
  }
  const path = /^Wrote (.*): /.exec((await openapi('--out', 'functions.json')).out)![1]!
  expect(JSON.parse(readFileSync(join(path), 'utf8'))).toEqual(DOCUMENT)
})

test('an older server is named as the reason', async () => {
  server.intercept = ({ path }) => {
    const error = {
      code: 'ROUTE_NOT_FOUND',
      message: 'The route does not exist.',
      retryable: false,
    }
    const body = { version: 1, status: 'error', requestId: 'req_01ARZ3NDEKTSV4RRFFQ69G5FAV', error }
    return path.startsWith('/v1/functions/') ? { status: 404, body } : null
  }
  const { exit, err } = await openapi()
  expect(exit).toBe(7)
  expect(err).toContain('The server is older than this client.')
})
