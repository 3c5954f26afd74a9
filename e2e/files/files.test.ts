/**
 * The life of a file, from its grant to its last byte, with documents in each store:
 * an Action makes a grant, curl uploads, a Mutation attaches the file, a Query shows it, another
 * grant is resumed by range, and a Mutation deletes it. The server restarts in the middle.
 *
 * @module-tag slow
 */
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sha256Hex } from '../../src/system/digests.ts'
import { freshDatabase, type TestDatabase } from '../../testing/databases/postgres.ts'
import { type Application, application, id, mutation, query, string } from '../application.ts'
import { argv } from '../argv.ts'
import { productEnvironment, run, SERVER } from '../harness.ts'
import {
  grantDownload,
  grantUpload,
  removeFile,
  signDownload,
  writeFileFunctions,
} from './workspace.ts'

const BYTES = randomBytes(3 * 1024 * 1024)
const DIGEST = sha256Hex(BYTES)

const LONG = process.env.SVC_TEST_LONG === '1'
/** The other tests of files have documents in SQLite. */
const STORES = LONG ? ['SQLite', 'PostgreSQL'] : ['PostgreSQL']

describe.each(STORES)('files with documents in %s', (kind) => {
  let documents: TestDatabase | undefined
  let app: Application
  let source: string
  let settings: Record<string, string> = {}
  let fileId: string

  beforeAll(async () => {
    if (kind === 'PostgreSQL') {
      documents = await freshDatabase()
      settings = { SERVICE_PLATFORM_DATABASE_URL: documents.url }
    }
    app = await application(writeFileFunctions, settings)
    source = join(app.installation.directory, 'film.bin')
    writeFileSync(source, BYTES)
  })
  afterAll(async () => {
    await app?.installation.dispose()
    await documents?.drop()
  })

  const curl = (...args: string[]) => run(['/usr/bin/curl', '-sS', ...args])
  const bearer = (token: string) => ['-H', `Authorization: Bearer ${token}`]
  const urlOf = ({ path }: { path: string }) => app.server.application + path
  const storedBytes = () => {
    const root = join(app.installation.productRoot, 'files/sha256')
    return readdirSync(root).flatMap((head) =>
      readdirSync(join(root, head)).map((tail) => head + tail),
    )
  }

  test('curl uploads with a grant, after the server sent 100 Continue', async () => {
    const grant = await grantUpload(app, BYTES.length)
    const type = ['-H', 'Content-Type: application/octet-stream', '-H', 'Expect: 100-continue']
    const uploaded = await curl('-v', '-T', source, ...type, ...bearer(grant.token), urlOf(grant))
    expect(uploaded.stderr).toContain('< HTTP/1.1 100 Continue')
    expect(uploaded.stderr).toContain('< HTTP/1.1 201 Created')
    const { file } = JSON.parse(uploaded.stdout)
    expect(file).toMatchObject({ uploadId: grant.uploadId, size: String(BYTES.length) })
    expect(file.sha256).toBe(DIGEST)
    fileId = file.fileId
    const again = await curl('-T', source, ...type, ...bearer(grant.token), urlOf(grant))
    expect(JSON.parse(again.stdout).error.code).toBe('GRANT_INVALID')
    const found = await query(app, {
      function: 'uploads.find',
      arguments: { upload: id(grant.uploadId!) },
    })
    expect(found.body.result.value).toBe(fileId)
  })

  test('a Mutation attaches the uploaded file, and a Query shows it', async () => {
    const listed = () => query(app, { function: 'uploads.list' })
    for (let i = 0; i < 3; i++) expect((await listed()).body.result.value).toEqual([])
    const attached = await mutation(app, {
      function: 'uploads.attach',
      arguments: { text: string('a film'), file: id(fileId) },
    })
    expect(attached.status).toBe(200)
    expect(JSON.stringify((await listed()).body.result)).toContain(DIGEST)
  })

  test('a download is resumed by range, across a crash of the server', async () => {
    const grant = await grantDownload(app, fileId)
    const target = join(app.installation.directory, 'copy.bin')
    const half = await curl('-r', '0-1000000', '-o', target, ...bearer(grant.token), urlOf(grant))
    expect(half.status, half.stderr).toBe(0)
    await app.restart('kill')
    const rest = await curl('-C', '-', '-o', target, ...bearer(grant.token), urlOf(grant))
    expect(rest.status, rest.stderr).toBe(0)
    expect(sha256Hex(readFileSync(target))).toBe(DIGEST)
    const head = await curl('-I', ...bearer(grant.token), urlOf(grant))
    expect(head.stdout).toMatch(/^HTTP\/1.1 200 OK/)
    expect(head.stdout).toMatch(new RegExp(`^content-length: ${BYTES.length}\r$`, 'im'))
    expect(head.stdout).toContain("filename*=UTF-8''film.bin")
  })

  test('a signed URL is read in ranges without a header, and no log has it', async () => {
    const path = await signDownload(app, fileId)
    expect(path).toMatch(/^\/v1\/files\/signed-downloads\/rk_url_v1_[A-Za-z0-9_-]{64,}$/)
    expect(await signDownload(app, fileId)).toBe(path)
    const target = join(app.installation.directory, 'shown.bin')
    const url = () => app.server.application + path
    const log = [...app.server.lines]
    const half = await curl('-D', '-', '-r', '0-1000000', '-o', target, url())
    expect(half.stdout).toMatch(/^HTTP\/1.1 206 Partial Content/)
    expect(half.stdout).toContain(`bytes 0-1000000/${BYTES.length}`)
    await app.restart('stop')
    const rest = await curl('-C', '-', '-o', target, url())
    expect(rest.status, rest.stderr).toBe(0)
    expect(sha256Hex(readFileSync(target))).toBe(DIGEST)
    const etag = ['-H', `If-Range: "${DIGEST}"`]
    const head = await curl('-I', ...etag, url())
    expect(head.stdout).toMatch(new RegExp(`^content-length: ${BYTES.length}\r$`, 'im'))
    // The file has no type that may be shown in place.
    expect(head.stdout).toMatch(/^content-disposition: attachment\r$/im)
    expect(head.stdout).toMatch(/^content-security-policy: sandbox; default-src 'none'/im)
    const forged = await curl(`${url().slice(0, -4)}AAAA`)
    expect(JSON.parse(forged.stdout).error.code).toBe('GRANT_INVALID')
    await expect.poll(() => app.server.lines.join()).toContain('GRANT_INVALID')
    const logged = [...log, ...app.server.lines].join()
    expect(logged).not.toContain(path.slice(-60, -10))
  })

  test('a start removes the bytes of a file that a Mutation has deleted', async () => {
    const grant = await grantDownload(app, fileId)
    const signed = app.server.application + (await signDownload(app, fileId))
    expect(storedBytes()).toEqual([DIGEST])
    expect((await removeFile(app, fileId)).status).toBe(200)
    const gone = await curl(...bearer(grant.token), urlOf(grant))
    expect(JSON.parse(gone.stdout).error.code).toBe('FILE_NOT_FOUND')
    expect(JSON.parse((await curl(signed)).stdout).error.code).toBe('FILE_NOT_FOUND')
    expect((await query(app, { function: 'uploads.list' })).body.result.value).toEqual([])
    await app.restart('stop')
    await expect.poll(storedBytes).toEqual([])
  })

  test('verify-storage distinguishes damaged files from bytes without a file', async () => {
    const grant = await grantUpload(app, BYTES.length)
    await curl('-T', source, '-H', 'Content-Type:', ...bearer(grant.token), urlOf(grant))
    await app.server.stop()
    const verify = (args: readonly string[] = []) =>
      run(argv`${SERVER} verify-storage ${args}`, {
        environment: {
          ...app.installation.environment,
          ...productEnvironment(app.installation),
          ...settings,
        },
      })
    expect(await verify()).toMatchObject({ status: 0, stdout: expect.stringContaining('1 files') })
    const path = join(
      app.installation.productRoot,
      'files/sha256',
      DIGEST.slice(0, 2),
      DIGEST.slice(2),
    )
    const orphan = 'ab'.repeat(32)
    writeFileSync(join(app.installation.productRoot, 'files/sha256/ab', orphan.slice(2)), 'orphan')
    expect(await verify()).toMatchObject({
      status: 0,
      stdout: expect.stringContaining(`Orphaned: ${orphan}`),
    })
    writeFileSync(path, Buffer.from(BYTES).fill(0, 10, 20))
    const damaged = await verify(argv`--repair`)
    expect(damaged.status).toBe(6)
    expect(damaged.stdout).toMatch(new RegExp(`^damaged: ${DIGEST} of fil_\\w{26}, set aside`, 'm'))
    expect(damaged.stdout).toContain(`Removed ${orphan}`)
    expect(readdirSync(join(app.installation.productRoot, 'files/damaged'))).toEqual([DIGEST])
    const missing = await verify()
    expect(missing.status).toBe(6)
    expect(missing.stdout).toMatch(new RegExp(`^missing: ${DIGEST}`, 'm'))
    await app.start()
  })
})
