/**
 * kill -9 of the server at random moments of uploads, with grants and of S3 clients: every file
 * that was acknowledged downloads with its digest, no file lacks its bytes, and no bytes lack a
 * file once the server has started.
 *
 * @module-tag slow
 */
import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sha256Hex } from '../../src/system/digests.ts'
import { s3ClientOf } from '../../testing/files/s3-remotes.ts'
import { SEED } from '../../testing/seeds.ts'
import { type Application, application, id, query } from '../application.ts'
import { argv } from '../argv.ts'
import { productEnvironment, run, SERVER } from '../harness.ts'
import { type Grant, grantDownload, grantUpload, writeFileFunctions } from './workspace.ts'

const KILLS = process.env.SVC_TEST_LONG === '1' ? 100 : 5
const UPLOADS = 6
const BYTES_MAX = 4 * 1024 * 1024

const Bucket = 'default'
/** Minimum size of a part in S3, except for the last one. */
const PART_BYTES = 5 * 1024 * 1024

let app: Application
let client: S3Client
beforeAll(async () => {
  app = await application(writeFileFunctions)
  const { accessKeyId, secretAccessKey } = await app.svc(argv`
    buckets keys issue ${Bucket} --name crashes --access write
    --remote --root ${app.installation.productRoot}
  `)
  const endpoint = `${app.server.application}/v1/s3`
  client = s3ClientOf({ endpoint, keys: { accessKeyId, secretAccessKey } })
})
afterAll(async () => {
  client?.destroy()
  await app?.installation.dispose()
})

interface Sent {
  readonly grant: Grant
  readonly sha256: string
  /** Null until it was acknowledged. */
  fileId: string | null
}

async function upload(grant: Grant, bytes: Buffer): Promise<Sent> {
  const sent: Sent = { grant, sha256: sha256Hex(bytes), fileId: null }
  const headers = { authorization: `Bearer ${grant.token}` }
  const request = { method: 'PUT', body: new Uint8Array(bytes), headers }
  try {
    const reply = await fetch(app.server.application + grant.path, request)
    const { file } = (await reply.json()) as { file?: { fileId: string } }
    if (reply.status === 201) sent.fileId = file!.fileId
  } catch {
    // The server was killed before it answered.
  }
  return sent
}

interface SentObject {
  readonly key: string
  readonly sha256: string
  isAcknowledged: boolean
}

/** Stores an object, in two parts if it is larger than PART_BYTES. */
async function putObject(Key: string, bytes: Buffer): Promise<SentObject> {
  const sent: SentObject = { key: Key, sha256: sha256Hex(bytes), isAcknowledged: false }
  try {
    if (bytes.length <= PART_BYTES) {
      await client.send(new PutObjectCommand({ Bucket, Key, Body: bytes }))
    } else {
      const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key }))
      const target = { Bucket, Key, UploadId }
      const Parts = []
      for (const PartNumber of [1, 2]) {
        const start = (PartNumber - 1) * PART_BYTES
        const Body = bytes.subarray(start, start + PART_BYTES)
        const part = await client.send(new UploadPartCommand({ ...target, PartNumber, Body }))
        Parts.push({ PartNumber, ETag: part.ETag })
      }
      const MultipartUpload = { Parts }
      await client.send(new CompleteMultipartUploadCommand({ ...target, MultipartUpload }))
    }
    sent.isAcknowledged = true
  } catch {
    // The server was killed before it answered.
  }
  return sent
}

/** Returns the digest of an object; null if it does not exist. */
async function digestOfObject({ key: Key }: SentObject): Promise<string | null> {
  try {
    const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }))
    return sha256Hex(await Body!.transformToByteArray())
  } catch (error) {
    if ((error as Error).name === 'NoSuchKey') return null
    throw error
  }
}

/** Removes the parts of uploads that the kills interrupted. */
async function abortUploads(): Promise<void> {
  const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket }))
  for (const { Key, UploadId } of Uploads) {
    await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }))
  }
}

/** Finds the file that a grant made, acknowledged or not. */
async function found({ grant }: Sent): Promise<string | null> {
  const argument = { upload: id(grant.uploadId!) }
  const reply = await query(app, { function: 'uploads.find', arguments: argument })
  return reply.body.result.value ?? null
}

async function download(fileId: string): Promise<string> {
  const { path, token } = await grantDownload(app, fileId)
  const headers = { authorization: `Bearer ${token}` }
  const reply = await fetch(app.server.application + path, { headers })
  expect(reply.status).toBe(200)
  return sha256Hex(new Uint8Array(await reply.arrayBuffer()))
}

function stored(): string[] {
  const root = join(app.installation.productRoot, 'files/sha256')
  const heads = readdirSync(root)
  return heads.flatMap((head) => readdirSync(join(root, head)).map((tail) => head + tail)).sort()
}

test(`${KILLS} kills lose no file that was acknowledged (SVC_SEED=${SEED})`, {
  timeout: 900_000,
}, async () => {
  const all: Sent[] = []
  const objects: SentObject[] = []
  for (let kill = 0; kill < KILLS; kill++) {
    const grants = await Promise.all(
      Array.from({ length: UPLOADS }, () => grantUpload(app, BYTES_MAX)),
    )
    const uploads = grants.map((grant, i) => {
      return upload(grant, randomBytes(1 + (((SEED + kill * 7 + i) * 7_919) % BYTES_MAX)))
    })
    const puts = [1_000_000, PART_BYTES + 1_000].map((length, i) => {
      return putObject(`${kill}/${i}`, randomBytes(length))
    })
    await new Promise((resolve) => setTimeout(resolve, (SEED * (kill + 7)) % 300))
    app.server.kill()
    await app.server.ended
    all.push(...(await Promise.all(uploads)))
    objects.push(...(await Promise.all(puts)))
    await app.start()
  }
  const present: string[] = []
  for (const sent of all) {
    const fileId = await found(sent)
    if (sent.fileId !== null) expect(fileId).toBe(sent.fileId)
    if (fileId === null) continue
    expect(await download(fileId)).toBe(sent.sha256)
    present.push(sent.sha256)
  }
  for (const sent of objects) {
    const sha256 = await digestOfObject(sent)
    if (sha256 !== null || sent.isAcknowledged) expect(sha256).toBe(sent.sha256)
    if (sha256 !== null) present.push(sha256)
  }
  await abortUploads()
  // A start removes unreferenced bytes at once. The parts of a completed upload may take a minute.
  await app.restart('stop')
  await expect.poll(stored, { timeout: 150_000 }).toEqual([...present].sort())
  expect(readdirSync(join(app.installation.productRoot, 'files/temporary'))).toEqual([])
  await app.server.stop()
  const verified = await run(argv`${SERVER} verify-storage`, {
    environment: { ...app.installation.environment, ...productEnvironment(app.installation) },
  })
  expect(verified.stdout).toContain('No file is damaged.')
  expect(verified.status).toBe(0)
  await app.start()
})
