/** Buckets and files of operators through the executables, across a crash of the server. */
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sha256Hex } from '../src/system/digests.ts'
import { type Application, application } from './application.ts'
import { writeFileFunctions } from './files/workspace.ts'

const BYTES = randomBytes(600_000)

let app: Application
beforeAll(async () => {
  app = await application(writeFileFunctions)
})
afterAll(() => app?.installation.dispose())

const svc = (...words: string[]) => {
  const root = ['--remote', '--root', app.installation.productRoot, '--json']
  return app.installation.svc([...words, ...root])
}
const at = (name: string) => join(app.installation.directory, name)

test('a quota and the record of an operation outlive the process', async () => {
  writeFileSync(at('film.bin'), BYTES)
  expect(await svc('buckets', 'create', 'films', '--quota', '1000000')).toMatchObject({ status: 0 })
  const put = (key: string, ...more: string[]) =>
    svc('files', 'put', at('film.bin'), '--bucket', 'films', '--key', key, ...more)
  const first = await put('a/film')
  const { operation, object } = JSON.parse(first.stdout)
  expect(object).toMatchObject({ sha256: sha256Hex(BYTES), size: '600000' })
  await app.restart('kill')
  const repeated = await put('a/film', '--operation-id', operation.operationId)
  expect(JSON.parse(repeated.stdout)).toMatchObject({ object, operation: { replayed: true } })
  const full = await put('b/film')
  expect([full.status, JSON.parse(full.stdout).error.code]).toEqual([4, 'PRODUCT_STATE_CONFLICT'])
  const fetched = await svc('files', 'get', 'a/film', '--bucket', 'films', '--out', at('copy'))
  expect(fetched.status, fetched.stderr).toBe(0)
  expect(sha256Hex(readFileSync(at('copy')))).toBe(sha256Hex(BYTES))
  const listed = JSON.parse((await svc('buckets', 'list')).stdout) as { items: object[] }
  const usage = { files: '1', bytes: '600000' }
  expect(listed.items).toContainEqual(expect.objectContaining({ usage }))
  expect((await svc('files', 'delete', 'a/film', '--bucket', 'films')).status).toBe(0)
  expect((await put('b/film')).status).toBe(0)
})
