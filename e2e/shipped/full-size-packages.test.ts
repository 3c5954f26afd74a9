/**
 * Publication at its limit: four packages of 64 MiB at once, which are not held in memory.
 *
 * @module-tag slow
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sha256 } from '../../src/system/digests.ts'
import {
  digestName,
  PACKAGE_BYTES_MAX,
  PACKAGE_MEDIA_TYPE,
} from '../../src/value/packages/workspace-package.ts'
import { type Application, application, type Json, query } from '../application.ts'
import { argv } from '../argv.ts'
import { findServer, residentBytes } from '../hostile/machine.ts'
import { createPackage } from './packages.ts'

const MEBIBYTE = 1024 * 1024
/** Bound of the growth of memory: less than the 256 MiB of the four packages. */
const GROWTH_BYTES_MAX = 160 * MEBIBYTE

let app: Application
let url: string
let projectId: string
let token: string

beforeAll(async () => {
  app = await application()
  const read = (path: string) => readFileSync(join(app.installation.directory, path), 'utf8')
  const root = JSON.parse(read('product/service.json'))
  projectId = root.projectId
  const base = `/v1/projects/${projectId}/environments/${root.environmentId}`
  url = `${app.server.management}${base}/workspace/publish`
  token = JSON.parse(read('config/credentials-v1.json')).accessToken
})

afterAll(async () => {
  await app?.installation.dispose()
})

/** Creates a package of exactly the maximal length. */
function fullPackage(workspace: string): Uint8Array {
  const guess = PACKAGE_BYTES_MAX - 4096
  const excess =
    createPackage({ projectId, workspace, sourceBytes: guess }).length - PACKAGE_BYTES_MAX
  const frame = createPackage({ projectId, workspace, sourceBytes: guess - excess })
  expect(frame.length).toBe(PACKAGE_BYTES_MAX)
  return frame
}

async function publish(frame: Uint8Array): Promise<{ status: number; body: Json }> {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': PACKAGE_MEDIA_TYPE,
      'x-service-expected-head': 'empty',
    },
    body: frame as BodyInit,
  })
  return { status: response.status, body: await response.json() }
}

test('packages of 64 MiB are written to disk, not to memory, while calls continue', async () => {
  const server = findServer(app.installation.directory)
  const before = residentBytes(server)
  let most = before
  let calls = 0
  let isDone = false
  const others = (async () => {
    while (!isDone) {
      expect((await query(app, { function: 'channels.list' })).status).toBe(200)
      most = Math.max(most, residentBytes(server))
      calls += 1
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  })()
  const frames = ['one', 'two', 'three', 'four'].map(fullPackage)
  const responses = await Promise.all(frames.map(publish)).finally(() => {
    isDone = true
  })
  await others
  expect(responses.map(({ status, body }) => [status, body.error])).toEqual(
    Array(4).fill([201, undefined]),
  )
  expect(responses.map(({ body }) => body.packageDigest)).toEqual(
    frames.map((frame) => digestName(sha256(frame.subarray(0, -32)))),
  )
  expect((most - before) / MEBIBYTE).toBeLessThan(GROWTH_BYTES_MAX / MEBIBYTE)
  expect(calls).toBeGreaterThan(5)
  const again = await publish(frames[0]!)
  expect(again).toMatchObject({ status: 200, body: { replayed: true } })
})

test('one more byte is too large, and one altered byte is invalid', async () => {
  const full = fullPackage('five')
  const longer = new Uint8Array(full.length + 1)
  longer.set(full)
  const large = await publish(longer)
  expect([large.status, large.body.error.code]).toEqual([413, 'PLATFORM_BODY_TOO_LARGE'])
  full[full.length - 100]! ^= 1
  const altered = await publish(full)
  expect([altered.status, altered.body.error.code]).toEqual([400, 'PRODUCT_INVALID'])
  const { workspaces } = await app.svc(argv`status --remote --root ${app.installation.productRoot}`)
  expect(workspaces.map(({ name }: Json) => name)).not.toContain('five')
})
