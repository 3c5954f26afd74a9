/**
 * Goal: a program of this machine synchronizes a Workspace into `svc dev` with the key of the root.
 * Method: `svc dev` in this process, called over its loopback address.
 *
 * @module-tag slow
 */
import { readFileSync, rmSync, statSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LocalDevelopment } from '../../../testing/development/local-development.ts'
import { PROJECT_ID } from '../../../testing/product-roots.ts'
import { PACKAGE_MEDIA_TYPE } from '../../value/packages/workspace-package.ts'
import type { WorkspaceState } from '../../wire/releases.ts'
import { buildWorkspace } from '../building/build.ts'
import { encodeWorkspacePackage } from '../building/package.ts'
import { describeInSandbox } from '../building/sandboxed-describe.ts'

let dev: LocalDevelopment
beforeAll(() => {
  dev = new LocalDevelopment()
})
afterAll(() => dev.dispose())

const keyIn = (file: string | null) => readFileSync(file!, 'utf8').trim()

async function send(url: string, key: string, path: string, init: RequestInit = {}) {
  const headers = { ...(init.headers as Record<string, string>), 'x-service-key': key }
  const response = await fetch(`${url}/v1/workspaces/${path}`, { ...init, headers })
  return { status: response.status, body: await response.json() }
}

test('the key of a root synchronizes and freezes, and stays until its file is lost', async () => {
  const first = await dev.start()
  const { url, developmentKeyFile: file } = first
  const key = keyIn(file)
  expect(key).toMatch(/^rk_dev_v1_[\w-]{43}$/)
  expect(statSync(file!).mode & 0o777).toBe(0o600)

  const built = await buildWorkspace(dev.workspace, { describe: describeInSandbox })
  const build = { ...built, workspace: 'other' }
  const put = await send(url, key, 'other', {
    method: 'PUT',
    headers: { 'content-type': PACKAGE_MEDIA_TYPE, 'x-service-expected-head': 'empty' },
    body: encodeWorkspacePackage(build, PROJECT_ID) as BodyInit,
  })
  expect(put).toMatchObject({ status: 201, body: { workspace: 'other' } })
  const { revisionId } = put.body as { revisionId: string }
  const frozen = await send(url, key, 'other/freeze', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ version: 1, revisionId }),
  })
  expect(frozen).toMatchObject({ status: 200, body: { state: 'validated' } })
  expect(await dev.version('workspace:other')).toBe('1')

  await dev.stop()
  const second = await dev.start()
  expect(keyIn(second.developmentKeyFile)).toBe(key)
  const head = await send(second.url, key, 'other')
  expect((head.body as WorkspaceState).head).toMatchObject({ revisionId, state: 'validated' })

  await dev.stop()
  rmSync(file!)
  const third = await dev.start()
  const next = keyIn(third.developmentKeyFile)
  expect(next).not.toBe(key)
  expect(await send(third.url, next, 'other')).toMatchObject({ status: 200 })
  expect(await send(third.url, key, 'other')).toMatchObject({ status: 401 })
})
