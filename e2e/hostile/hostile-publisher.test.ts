/**
 * A publisher that does not use the builder: packages made by hand and sent over HTTP. What the
 * builder would reject is rejected, or contained, by the server, without an effect on other calls.
 *
 * @module-tag slow
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sha256 } from '../../src/system/digests.ts'
import { canonicalJson } from '../../src/value/canonical-json.ts'
import {
  digestName,
  encodeArtifact,
  encodePackage,
  PACKAGE_MEDIA_TYPE,
} from '../../src/value/packages/workspace-package.ts'
import { type Application, application, int64, type Json, query, string } from '../application.ts'
import { call, type Reply } from '../harness.ts'
import { ARTIFACTS, type HostileArtifact } from './artifacts.ts'
import { findServer, residentBytes } from './machine.ts'

const MEBIBYTE = 1024 * 1024
const LINE_CHARACTERS_MAX = 64 * 1024
const LONG = process.env.SVC_TEST_LONG === '1'
/** Time limit for a concurrent call, which only an overloaded machine exceeds. */
const SLOWEST_MILLIS = 1_500

let app: Application
let token: string
let base: string
let projectId: string
/** The server's description of a Function of the test's own Workspace. */
let definition: Json
let before: number
let nonce = 0

beforeAll(async () => {
  app = await application()
  const read = (path: string) => readFileSync(join(app.installation.directory, path), 'utf8')
  const root = JSON.parse(read('product/service.json'))
  projectId = root.projectId
  base = `/v1/projects/${projectId}/environments/${root.environmentId}`
  token = /rk_at_v1_[\w-]{43}/.exec(read('config/credentials-v1.json'))![0]
  const path = `${base}/functions?target=channel:production`
  const catalog = (await call(app.server.management, 'GET', path, { token })).body as Json
  // The manifest of a Query lacks the fields that the catalog has for other kinds.
  const {
    name: _,
    uses: __,
    ...sample
  } = catalog.functions.find((each: Json) => each.name === 'channels.list')
  definition = { ...sample, arguments: { nonce: { type: 'int64' } }, returns: { type: 'any' } }
  before = residentBytes(findServer(app.installation.directory))
})

afterAll(async () => {
  await app?.installation.dispose()
})

function define(handler: string, more = ''): string {
  return `__svc.define({ schema: null, modules: { f: { attack: { [Symbol.for('svc.function')]: {
    ...${JSON.stringify(definition)}, handler: ${handler}, ${more}
  } } } } })`
}

function packageOf({ source, sourceMap }: HostileArtifact, workspace: string): Uint8Array {
  const map = sourceMap === undefined ? null : sourceMap()
  const artifact = encodeArtifact({ source: source(define), sourceMap: map }, sha256)
  const manifest = canonicalJson({
    version: 1,
    projectId,
    workspace,
    artifact: { digest: digestName(sha256(artifact)), bytes: artifact.length },
    functions: [{ ...definition, name: 'f.attack' }],
    tables: [],
  })
  return encodePackage({ manifest, artifact }, sha256)
}

async function publish(frame: Uint8Array): Promise<Json> {
  const response = await fetch(`${app.server.management}${base}/workspace/publish`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': PACKAGE_MEDIA_TYPE,
      'x-service-expected-head': 'empty',
    },
    body: frame as BodyInit,
  })
  const body = (await response.json()) as Json
  expect([response.status, body.error]).toEqual([201, undefined])
  return body
}

function validate(releaseId: string): Promise<Reply> {
  return call(app.server.management, 'POST', `${base}/releases/${releaseId}`, { token, body: {} })
}

/** Makes calls until `work` ends. Returns the slowest of them, in milliseconds. */
async function withOtherCalls<T>(work: Promise<T>): Promise<{ result: T; slowestMillis: number }> {
  let isDone = false
  let slowestMillis = 0
  const others = (async () => {
    while (!isDone) {
      const started = performance.now()
      expect((await query(app, { function: 'channels.list' })).status).toBe(200)
      slowestMillis = Math.max(slowestMillis, performance.now() - started)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  })()
  try {
    await work
  } finally {
    isDone = true
    await others
  }
  return { result: await work, slowestMillis }
}

test.each(ARTIFACTS.map((each, i) => [each.name, each, i] as const))(
  'a package that %s affects no other call',
  async (_, artifact, i) => {
    const { releaseId } = await publish(packageOf(artifact, `hostile-${i}`))
    const validated = (await withOtherCalls(validate(releaseId))).result
    if (artifact.outcome === 'rejected') {
      expect([validated.status, (validated.body as Json).error?.code]).toEqual([
        400,
        'PRODUCT_INCOMPATIBLE',
      ])
      expect(JSON.stringify(validated.body).length).toBeLessThan(4_096)
      const reply = await query(app, { target: `release:${releaseId}`, function: 'f.attack' })
      expect([reply.status, reply.body.error.code]).toEqual([404, 'TARGET_NOT_FOUND'])
      return
    }
    expect([validated.status, (validated.body as Json).error]).toEqual([200, undefined])
    const invocation = {
      target: `release:${releaseId}`,
      function: 'f.attack',
      arguments: { nonce: int64(nonce++) },
    }
    const { result, slowestMillis } = await withOtherCalls(query(app, invocation))
    if (artifact.outcome === 'stopped') {
      expect([result.status, result.body.result]).toEqual([200, string('stopped')])
    } else expect(result.body.error?.code).toBe(artifact.outcome)
    // A machine that runs other tests delays calls as well.
    if (LONG) expect(slowestMillis).toBeLessThan(SLOWEST_MILLIS)
  },
)

test('the server is unchanged after all packages', async () => {
  expect((await query(app, { function: 'channels.list' })).status).toBe(200)
  const ready = await call(app.server.management, 'GET', '/health/ready')
  expect(ready.status).toBe(200)
  expect(app.server.lines.filter((line) => line.includes('server.uncaught'))).toEqual([])
  for (const line of app.server.lines) expect(line.length).toBeLessThan(LINE_CHARACTERS_MAX)
  expect(residentBytes(findServer(app.installation.directory)) - before).toBeLessThan(
    256 * MEBIBYTE,
  )
})
