/**
 * Clients that take more than their share of quotas, CPU time, descriptors and the log.
 *
 * @module-tag slow
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { CreateMultipartUploadCommand, UploadPartCommand } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type S3Keys, s3ClientOf } from '../../testing/files/s3-remotes.ts'
import { signS3 } from '../../testing/files/s3-signers.ts'
import { type Application, action, application, id, string } from '../application.ts'
import { argv } from '../argv.ts'
import { periodsSince } from '../log-periods.ts'
import { serverPid } from '../slow-peers/attacks.ts'
import { grantDownload, grantUpload, writeFileFunctions } from './workspace.ts'

const MIB = 1024 * 1024

let app: Application
beforeAll(async () => {
  app = await application(writeFileFunctions, { SERVICE_MANAGEMENT_TLS_TERMINATED: 'true' })
})
afterAll(() => app?.installation.dispose())

/** Sends the head of a request from an address; returns the connection and the first bytes. */
async function begin(origin: string, peer: string, head: string): Promise<[Socket, string]> {
  const { hostname, port } = new URL(origin)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  socket.write(`${head}\r\nX-Forwarded-For: ${peer}\r\n\r\n`)
  const [bytes] = await once(socket, 'data')
  socket.pause()
  return [socket, String(bytes)]
}

/** Returns the records that the server has written about an address. */
function recordsOf(peer: string): { readonly event: string }[] {
  const lines = app.server.lines.filter((line) => line.includes(`"peer":"${peer}"`))
  return lines.map((line) => JSON.parse(line))
}

describe('clients without credentials', () => {
  const targets = ['GET /healthz', 'GET /v1/s3/a', 'HEAD /v1/s3/a', 'HEAD /', 'POST /v1/query']

  test.each(['[', '%', 'x:99999', 'x:-1'])(
    'a request with the host %s is rejected',
    async (host) => {
      const { management, application: origin } = app.server
      const peer = `198.51.100.${host.length}`
      const before = recordsOf(peer).length
      for (const target of targets) {
        const head = `${target} HTTP/1.1\r\nHost: ${host}`
        for (const each of [management, origin!]) {
          expect((await begin(each, peer, head))[1], target).toMatch(/^HTTP\/1.1 400 /)
        }
      }
      await expect.poll(() => recordsOf(peer).length).toBeGreaterThan(before)
      for (const { event } of recordsOf(peer)) expect(event).toBe('request.rejected')
    },
  )

  test('a client without credentials leaves at most ten management records a minute', async () => {
    const peer = '198.51.100.77'
    const send = async (path: string, from: string) => {
      const headers = { 'x-forwarded-for': from }
      return (await fetch(`${app.server.management}${path}`, { headers })).status
    }
    await expect.poll(() => periodsSince(app)(), { timeout: 100_000 }).toBe(1)
    const periods = periodsSince(app)
    for (let i = 0; i < 15; i++) {
      expect(await send('/v1/auth/me', peer)).toBe(401)
      expect(await send('/health/live', peer)).toBe(200)
    }
    const last = '198.51.100.78'
    expect(await send('/v1/auth/me', last)).toBe(401)
    await expect.poll(() => recordsOf(last)).toHaveLength(1)
    expect(recordsOf(peer).length).toBeGreaterThanOrEqual(10)
    expect(recordsOf(peer).length).toBeLessThanOrEqual(10 * periods())
    expect(recordsOf(peer)[0]).toMatchObject({ event: 'request.rejected' })
  })
})

describe('S3 clients', () => {
  const Bucket = 'small'
  const QUOTA_PARTS = 3
  let keys: S3Keys
  let endpoint: string

  beforeAll(async () => {
    const remote = argv`--remote --root ${app.installation.productRoot}`
    await app.svc(
      argv`buckets create ${Bucket} --quota ${String(QUOTA_PARTS * MIB + MIB / 2)} ${remote}`,
    )
    keys = await app.svc(argv`buckets keys issue ${Bucket} --name a --access write ${remote}`)
    endpoint = `${app.server.application}/v1/s3`
  })

  /** Sends a body in chunks of this size. */
  async function putChunks(chunkBytes: number): Promise<Response> {
    const bytes = 256 * 1024
    const chunk = `${chunkBytes.toString(16)}\r\n${'x'.repeat(chunkBytes)}\r\n`
    const body = `${chunk.repeat(bytes / chunkBytes)}0\r\n\r\n`
    const url = `${endpoint}/${Bucket}/chunked`
    const { headers } = signS3(keys, {
      method: 'PUT',
      url,
      payload: 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
      headers: { 'content-encoding': 'aws-chunked', 'x-amz-decoded-content-length': `${bytes}` },
    })
    return fetch(url, { method: 'PUT', headers, body })
  }

  test('an S3 client cannot send a body in chunks of one byte', async () => {
    const tiny = await putChunks(1)
    expect([tiny.status, await tiny.text()]).toEqual([
      400,
      expect.stringContaining('InvalidRequest'),
    ])
    expect((await putChunks(64)).status).toBe(200)
  })

  test('an S3 client cannot exceed the quota of the bucket by concurrent parts', async () => {
    const client = s3ClientOf({ endpoint, keys })
    onTestFinished(() => client.destroy())
    const part = { Bucket, Key: 'parted' }
    const { UploadId } = await client.send(new CreateMultipartUploadCommand(part))
    const outcomes = await Promise.all(
      Array.from({ length: 9 }, async (_, i) => {
        const command = { ...part, UploadId, PartNumber: i + 1, Body: randomBytes(MIB) }
        const sent = client.send(new UploadPartCommand(command))
        return sent.then(
          () => 'stored',
          ({ name }: Error) => name,
        )
      }),
    )
    expect(outcomes.filter((each) => each === 'stored')).toHaveLength(QUOTA_PARTS)
    expect(outcomes.filter((each) => each === 'EntityTooLarge')).toHaveLength(9 - QUOTA_PARTS)
  })
})

describe('applications', () => {
  const bytes = randomBytes(16 * MIB)
  let fileId: string

  beforeAll(async () => {
    const { path, token } = await grantUpload(app, bytes.length)
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream' }
    const url = `${app.server.application}${path}`
    const response = await fetch(url, { method: 'PUT', headers, body: bytes })
    fileId = ((await response.json()) as { file: { fileId: string } }).file.fileId
  })

  test('unread downloads of an application hold a bounded number of descriptors', async () => {
    const { path, token } = await grantDownload(app, fileId)
    const head = `GET ${path} HTTP/1.1\r\nHost: a.test\r\nAuthorization: Bearer ${token}`
    const descriptors = () => readdirSync(`/proc/${serverPid(app)}/fd`).length
    const before = descriptors()
    const statuses: string[] = []
    for (let i = 0; i < 150; i++) {
      const [, answer] = await begin(app.server.application!, '192.0.2.1', head)
      statuses.push(answer.slice(9, 12))
    }
    expect(statuses.filter((status) => status === '200')).toHaveLength(128)
    expect(statuses.filter((status) => status === '503')).toHaveLength(22)
    // Two for each download, and one for each connection that was rejected.
    expect(descriptors() - before).toBeLessThan(2 * 128 + 22 + 20)
    const [, other] = await begin(app.server.application!, '192.0.2.2', head)
    expect(other).toMatch(/^HTTP\/1.1 200 /)
  })

  test('the name of a download cannot change the direction of text', async () => {
    const { status, body } = await action(app, {
      function: 'uploads.grantDownload',
      arguments: { file: id(fileId), fileName: string('a\u202etxt.exe') },
    })
    expect([status, body.error.code]).toEqual([500, 'FUNCTION_FAILED'])
  })
})
