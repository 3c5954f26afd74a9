/**
 * The length and the framing of downloads, from the disk and from an S3-compatible store.
 *
 * @module-tag slow
 */
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { GetObjectCommand, HeadObjectCommand } from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { s3ClientOf } from '../../testing/files/s3-remotes.ts'
import { S3Server } from '../../testing/servers/s3-server.ts'
import { type Application, application } from '../application.ts'
import { argv } from '../argv.ts'
import { framingOf, rawAnswer } from './raw-answers.ts'
import { grantDownload, grantUpload, signDownload, writeFileFunctions } from './workspace.ts'

const LONG = randomBytes(3_000_000)
const Bucket = 'films'
const Key = 'long'

describe.each(['the disk', 'an S3-compatible store'])('from %s', (store) => {
  const s3 = store === 'the disk' ? null : new S3Server()
  let app: Application
  let bucketId: string
  const remote = () => argv`--remote --root ${app.installation.productRoot}`

  beforeAll(async () => {
    app = await application(writeFileFunctions, s3 === null ? {} : settingsOf(s3))
    const film = join(app.installation.directory, 'film')
    writeFileSync(film, LONG)
    ;({ bucketId } = await app.svc(argv`buckets create ${Bucket} ${remote()}`))
    await app.svc(argv`files put ${film} --bucket ${Bucket} --key ${Key} ${remote()}`)
  })
  afterAll(async () => {
    await app?.installation.dispose()
    await s3?.stop()
  })

  /** Expects the whole file, two ranges of it and a HEAD request, each with its length. */
  async function expectLengths(
    get: string,
    headers: Record<string, string> = {},
    head: string = get,
  ): Promise<void> {
    const whole = await rawAnswer('GET', get, headers)
    expect(framingOf(whole)).toEqual(framed(200, LONG.length))
    expect(whole.body.equals(LONG)).toBe(true)
    for (const [start, end] of [
      [1_000, 2_001_000],
      [2_999_990, 3_000_000],
    ] as const) {
      const range = `bytes=${start}-${end - 1}`
      const part = await rawAnswer('GET', get, { ...headers, range })
      expect(framingOf(part)).toEqual(framed(206, end - start))
      expect(part.headers.get('content-range')).toBe(`bytes ${start}-${end - 1}/${LONG.length}`)
      expect(part.body.equals(LONG.subarray(start, end))).toBe(true)
    }
    const known = await rawAnswer('HEAD', head, headers)
    expect(framingOf(known)).toEqual({ ...framed(200, LONG.length), bytes: 0 })
    expect(known.headers.get('x-content-type-options')).toBe('nosniff')
    expect(whole.headers.get('x-content-type-options')).toBe('nosniff')
  }

  test('downloads by a grant and by a signed URL have their length', async () => {
    const upload = await grantUpload(app, LONG.length)
    const stored = await fetch(app.server.application + upload.path, {
      method: 'PUT',
      body: LONG,
      headers: { authorization: `Bearer ${upload.token}` },
    })
    const { file } = (await stored.json()) as { readonly file: { readonly fileId: string } }
    const { path, token } = await grantDownload(app, file.fileId)
    await expectLengths(app.server.application + path, { authorization: `Bearer ${token}` })
    await expectLengths(app.server.application + (await signDownload(app, file.fileId)))
  })

  test('objects have their length for S3 clients', async () => {
    const keys = await app.svc(
      argv`buckets keys issue ${Bucket} --name all --access read ${remote()}`,
    )
    const { accessKeyId, secretAccessKey } = keys
    const endpoint = `${app.server.application}/v1/s3`
    const client = s3ClientOf({ endpoint, keys: { accessKeyId, secretAccessKey } })
    const get = await getSignedUrl(client, new GetObjectCommand({ Bucket, Key }))
    await expectLengths(get, {}, await getSignedUrl(client, new HeadObjectCommand({ Bucket, Key })))
    client.destroy()
  })

  test('objects have their length for operators', async () => {
    const read = (path: string) =>
      JSON.parse(readFileSync(join(app.installation.directory, path), 'utf8'))
    const { projectId, environmentId } = read('product/service.json')
    const environment = `/v1/projects/${projectId}/environments/${environmentId}`
    const url = `${app.server.management}${environment}/buckets/${bucketId}/objects/${Key}`
    const { accessToken } = read('config/credentials-v1.json')
    await expectLengths(url, { authorization: `Bearer ${accessToken}` })
  })
})

const framed = (status: number, length: number) => ({
  status,
  length: String(length),
  coding: null,
  bytes: length,
})

const settingsOf = ({ endpoint }: S3Server) => ({
  SERVICE_STORAGE_S3_ENDPOINT: endpoint,
  SERVICE_STORAGE_S3_BUCKET: 'files',
  SERVICE_STORAGE_S3_ACCESS_KEY_ID: 'id',
  SERVICE_STORAGE_S3_SECRET_ACCESS_KEY: 'secret',
})
