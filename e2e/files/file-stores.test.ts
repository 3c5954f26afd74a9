/**
 * Files with bytes in an S3-compatible store, and a disk that is nearly full.
 *
 * @module-tag slow
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { S3Server } from '../../testing/servers/s3-server.ts'
import { startServer } from '../../testing/servers/server-process.ts'
import { type Application, application, query, send } from '../application.ts'
import { argv } from '../argv.ts'
import { productEnvironment, run, SERVER } from '../harness.ts'
import { grantDownload, grantUpload, removeFile, writeFileFunctions } from './workspace.ts'

type Reply = {
  readonly file: { readonly fileId: string }
  readonly error: { readonly code: string }
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

async function upload(app: Application, grant: { path: string; token: string }, body: string) {
  const request = { method: 'PUT', body, headers: bearer(grant.token) }
  const reply = await fetch(app.server.application + grant.path, request)
  return { status: reply.status, body: (await reply.json()) as Reply, headers: reply.headers }
}

async function download(app: Application, grant: { path: string; token: string }, range = '') {
  const headers = { ...bearer(grant.token), ...(range !== '' && { range }) }
  const reply = await fetch(app.server.application + grant.path, { headers })
  return { status: reply.status, text: await reply.text() }
}

describe('bytes in an S3-compatible store', () => {
  let app: Application
  let s3: S3Server
  let settings: Record<string, string>
  let fileId: string

  beforeAll(async () => {
    s3 = new S3Server()
    settings = {
      SERVICE_STORAGE_S3_ENDPOINT: s3.endpoint,
      SERVICE_STORAGE_S3_BUCKET: 'files',
      SERVICE_STORAGE_S3_ACCESS_KEY_ID: 'id',
      SERVICE_STORAGE_S3_SECRET_ACCESS_KEY: 'secret-canary',
    }
    app = await application(writeFileFunctions, settings)
  })
  afterAll(async () => {
    await app?.installation.dispose()
    await s3?.stop()
  })

  const environment = () => ({
    ...app.installation.environment,
    ...productEnvironment(app.installation),
    ...settings,
  })

  test('a file is uploaded and downloaded, whole and in part', async () => {
    const { status, body } = await upload(app, await grantUpload(app, 100), '0123456789')
    expect(status).toBe(201)
    fileId = body.file.fileId
    const address = /^env_\w{26}\/sha256\/\w{64}$/
    expect([...s3.objects.keys()]).toEqual([expect.stringMatching(address)])
    const grant = await grantDownload(app, fileId)
    expect(await download(app, grant)).toEqual({ status: 200, text: '0123456789' })
    expect(await download(app, grant, 'bytes=2-4')).toEqual({ status: 206, text: '234' })
  })

  test('a store that fails is 503 for its files, and recovers without a restart', async () => {
    const grant = await grantDownload(app, fileId)
    s3.failure = 'error'
    const failed = await download(app, grant)
    expect([failed.status, JSON.parse(failed.text).error.code]).toEqual([503, 'UNAVAILABLE'])
    const rejected = await upload(app, await grantUpload(app, 100), 'during')
    expect([rejected.status, rejected.body.error.code]).toEqual([503, 'UNAVAILABLE'])
    expect((await query(app, { function: 'uploads.list' })).status).toBe(200)
    s3.failure = null
    expect((await download(app, grant)).status).toBe(200)
    expect((await upload(app, await grantUpload(app, 100), 'after')).status).toBe(201)
  })

  test('the download ends early if the store sends a wrong length', async () => {
    const grant = await grantDownload(app, fileId)
    s3.failure = 'short'
    const lied = await download(app, grant).catch(() => null)
    expect(lied?.text).not.toBe('0123456789')
    expect(lied?.status).not.toBe(200)
    s3.failure = null
  })

  test('verify-storage reads the store, and a deleted file leaves nothing there', async () => {
    await app.server.stop()
    const verified = await run(argv`${SERVER} verify-storage`, { environment: environment() })
    expect(verified.stdout).toContain('Verified 2 files')
    expect(verified.stdout).toContain('No file is damaged.')
    await app.start()
    await removeFile(app, fileId)
    await app.restart('stop')
    await expect.poll(() => s3.objects.size).toBe(1)
  })

  test('the server does not start if the settings name another store', async () => {
    await app.server.stop()
    const without = { ...app.installation.environment, ...productEnvironment(app.installation) }
    const elsewhere = { ...environment(), SERVICE_STORAGE_S3_BUCKET: 'other' }
    for (const [given, fix] of [
      [without, 'set SERVICE_STORAGE_S3_BUCKET'],
      [elsewhere, 'name the new bucket in files.s3'],
    ] as const) {
      const checked = await run(argv`${SERVER} check`, { environment: given })
      expect(checked.status).toBe(1)
      expect(checked.stderr).toContain('SERVER_PRODUCT_ROOT_INVALID')
      expect(checked.stderr).toContain(fix)
      const started = startServer({
        executable: SERVER,
        environment: given,
        directory: app.installation.directory,
      })
      await expect(started).rejects.toThrow('SERVER_PRODUCT_ROOT_INVALID')
    }
    await app.start()
    expect(app.server.lines.join('\n')).not.toContain('secret-canary')
  })
})

describe('a disk that has less free space than the floor', () => {
  let app: Application
  beforeAll(async () => {
    app = await application(writeFileFunctions)
  })
  afterAll(() => app?.installation.dispose())

  async function restartWith(settings: Readonly<Record<string, string>>): Promise<void> {
    await app.server.stop()
    const { installation } = app
    // A start makes the directory again, which cleaners of temporary files remove.
    rmSync(join(installation.productRoot, 'files/temporary'), { recursive: true })
    const product = productEnvironment(installation)
    app.server = await startServer({
      environment: { ...installation.environment, ...product, ...settings },
      executable: SERVER,
      directory: installation.directory,
    })
  }

  test('an upload is 503 and keeps its grant, and nothing else suffers', async () => {
    const grant = await grantUpload(app, 100)
    await restartWith({ SERVICE_STORAGE_FREE_FLOOR_BYTES: '999999999999999' })
    await expect(grantUpload(app, 100)).rejects.toThrow('UNAVAILABLE')
    const rejected = await upload(app, grant, 'x')
    expect([rejected.status, rejected.body.error.code]).toEqual([503, 'UNAVAILABLE'])
    expect(rejected.headers.get('retry-after')).toBe('1')
    expect((await query(app, { function: 'uploads.list' })).status).toBe(200)
    expect((await send(app.server.application!, 'GET', '/readyz')).status).toBe(200)
    await restartWith({})
    expect((await upload(app, grant, 'x')).status).toBe(201)
  })
})
