/**
 * Buckets, files of operators, and storage keys with the clients of S3, through the executables and
 * across crashes of the server.
 *
 * @module-tag slow
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sha256Hex } from '../../src/system/digests.ts'
import { KOPIA, RCLONE, RESTIC, reasonWithout, S3CMD } from '../../testing/files/s3-programs.ts'
import { type S3Keys, type S3Remote, s3ClientOf } from '../../testing/files/s3-remotes.ts'
import {
  backUpWithKopia,
  backUpWithRestic,
  syncWithRclone,
  syncWithS3cmd,
} from '../../testing/files/s3-round-trips.ts'
import { type Application, application, query, string } from '../application.ts'
import { argv } from '../argv.ts'
import { writeFileFunctions } from './workspace.ts'

const BYTES = randomBytes(600_000)
const MIB = 1024 * 1024

let app: Application
beforeAll(async () => {
  app = await application(writeFileFunctions, { SERVICE_S3_HOST: 'localhost' })
})
afterAll(() => app?.installation.dispose())

const svc = (words: readonly string[]) => {
  return app.installation.svc(argv`${words} --remote --root ${app.installation.productRoot} --json`)
}
const at = (name: string) => join(app.installation.directory, name)

test('a quota and the record of an operation outlive the process', async () => {
  writeFileSync(at('film.bin'), BYTES)
  expect(await svc(argv`buckets create films --quota 1000000`)).toMatchObject({ status: 0 })
  const put = (key: string, more: readonly string[] = []) =>
    svc(argv`files put ${at('film.bin')} --bucket films --key ${key} ${more}`)
  const first = await put('a/film')
  const { operation, object } = JSON.parse(first.stdout)
  expect(object).toMatchObject({ sha256: sha256Hex(BYTES), size: '600000' })
  await app.restart('kill')
  const repeated = await put('a/film', argv`--operation-id ${operation.operationId}`)
  expect(JSON.parse(repeated.stdout)).toMatchObject({ object, operation: { replayed: true } })
  const full = await put('b/film')
  expect([full.status, JSON.parse(full.stdout).error.code]).toEqual([4, 'PRODUCT_STATE_CONFLICT'])
  const fetched = await svc(argv`files get a/film --bucket films --out ${at('copy')}`)
  expect(fetched.status, fetched.stderr).toBe(0)
  expect(sha256Hex(readFileSync(at('copy')))).toBe(sha256Hex(BYTES))
  const listed = JSON.parse((await svc(argv`buckets list`)).stdout) as { items: object[] }
  const usage = { files: '1', bytes: '600000' }
  expect(listed.items).toContainEqual(expect.objectContaining({ usage }))
  expect((await svc(argv`files delete a/film --bucket films`)).status).toBe(0)
  expect((await put('b/film')).status).toBe(0)
})

describe('clients of S3, with keys of a bucket', () => {
  const Bucket = 'photos'
  let remote: S3Remote
  let client: S3Client

  const issued = async (words: readonly string[]): Promise<S3Keys> => {
    const { status, stdout, stderr } = await svc(argv`buckets keys ${words}`)
    expect(status, stderr).toBe(0)
    const { accessKeyId, secretAccessKey } = JSON.parse(stdout)
    return { accessKeyId, secretAccessKey }
  }
  const issue = (access: 'read' | 'write') =>
    issued(argv`issue ${Bucket} --name ${access} --access ${access}`)
  const nameOf = async (sent: Promise<unknown>): Promise<string> => {
    try {
      await sent
      return 'no failure'
    } catch (error) {
      return (error as Error).name
    }
  }
  const put = (by: S3Client, Key: string, Body: string | Uint8Array) =>
    by.send(new PutObjectCommand({ Bucket, Key, Body }))
  const read = async (by: S3Client, Key: string, more = {}) => {
    const { Body } = await by.send(new GetObjectCommand({ Bucket, Key, ...more }))
    return Body!.transformToString()
  }

  beforeAll(async () => {
    expect((await svc(argv`buckets create ${Bucket}`)).status).toBe(0)
    const endpoint = `${app.server.application}/v1/s3`
    remote = { endpoint, bucket: Bucket, keys: await issue('write') }
    client = s3ClientOf(remote)
  })
  afterAll(() => client?.destroy())

  test('operators and Functions see what the SDK stores', async () => {
    const { ETag } = await put(client, 'a/summer é.txt', 'summer')
    expect(await read(client, 'a/summer é.txt')).toBe('summer')
    expect(await read(client, 'a/summer é.txt', { Range: 'bytes=1-3' })).toBe('umm')
    const seen = await query(app, {
      function: 'uploads.objects',
      arguments: { bucket: string(Bucket) },
    })
    expect(JSON.stringify(seen.body.result)).toContain(ETag!.replaceAll('"', ''))
    const stored = await svc(argv`files put ${at('film.bin')} --bucket ${Bucket} --key b/film`)
    expect(stored.status, stored.stderr).toBe(0)
    const { Contents } = await client.send(new ListObjectsV2Command({ Bucket }))
    expect(Contents?.map(({ Key, Size }) => [Key, Size])).toEqual([
      ['a/summer é.txt', 6],
      ['b/film', 600_000],
    ])
    // No suffix: what operators store has its MD5 as well.
    expect(Contents?.[1]?.ETag).toMatch(/^"[0-9a-f]{32}"$/)
  })

  test('a multipart upload and a signed URL outlive a crash', async () => {
    const part = { Bucket, Key: 'parts' }
    const { UploadId } = await client.send(new CreateMultipartUploadCommand(part))
    const upload = async (PartNumber: number, Body: Uint8Array) => {
      const command = new UploadPartCommand({ ...part, UploadId, PartNumber, Body })
      return { PartNumber, ETag: (await client.send(command)).ETag }
    }
    const head = randomBytes(5 * MIB)
    const url = await getSignedUrl(client, new GetObjectCommand({ Bucket, Key: 'a/summer é.txt' }))
    const Parts = [await upload(2, head)]
    await app.restart('kill')
    Parts.push(await upload(7, BYTES))
    const MultipartUpload = { Parts }
    await client.send(new CompleteMultipartUploadCommand({ ...part, UploadId, MultipartUpload }))
    const whole = await client.send(new GetObjectCommand(part))
    const bytes = await whole.Body!.transformToByteArray()
    expect(sha256Hex(bytes)).toBe(sha256Hex(head, BYTES))
    const second = await client.send(new GetObjectCommand({ ...part, PartNumber: 2 }))
    expect([second.PartsCount, second.ContentLength]).toEqual([2, BYTES.length])
    expect(await (await fetch(url)).text()).toBe('summer')
  })

  test.skipIf(!existsSync(RCLONE))(
    `rclone syncs files both ways and finds no difference${reasonWithout(RCLONE)}`,
    () => syncWithRclone(remote, { count: 10, largeBytes: 6 * MIB }),
  )

  test.skipIf(!existsSync(S3CMD))(
    `s3cmd syncs files both ways, in parts where they are large${reasonWithout(S3CMD)}`,
    () => syncWithS3cmd(remote, { count: 5, largeBytes: 6 * MIB }),
  )

  test.skipIf(!existsSync(RESTIC))(
    `restic backs up, checks and restores at the S3 host${reasonWithout(RESTIC)}`,
    () => {
      const { port } = new URL(app.server.application!)
      return backUpWithRestic({ ...remote, endpoint: `http://localhost:${port}` })
    },
  )

  test.skipIf(!existsSync(KOPIA))(
    `kopia backs up, checks and restores at the S3 host${reasonWithout(KOPIA)}`,
    () => {
      const { port } = new URL(app.server.application!)
      return backUpWithKopia({ ...remote, endpoint: `http://localhost:${port}` })
    },
  )

  test('a client with a wrong key or a wrong clock gets nothing', async () => {
    const by = async (keys: S3Keys, more: Parameters<typeof s3ClientOf>[1] = {}) => {
      const other = s3ClientOf({ ...remote, keys }, more)
      const names = [await nameOf(put(other, 'x', 'x')), await nameOf(read(other, 'parts'))]
      other.destroy()
      return names
    }
    const { accessKeyId } = remote.keys
    const { secretAccessKey } = await issue('read')
    const mixed = 'SignatureDoesNotMatch'
    expect(await by({ accessKeyId, secretAccessKey })).toEqual([mixed, mixed])
    expect(await by(await issue('read'))).toEqual(['AccessDenied', 'no failure'])
    const foreign = await issued(argv`issue films --name x --access write`)
    expect(await by(foreign)).toEqual(['AccessDenied', 'AccessDenied'])
    const skewed = 'RequestTimeTooSkewed'
    const systemClockOffset = 20 * 60_000
    expect((await by(remote.keys, { systemClockOffset }))[0]).toBe(skewed)
  })

  test('a revoked key ends at once, in signed URLs too, and its successor is valid', async () => {
    const { accessKeyId } = remote.keys
    const successor = await issued(argv`rotate ${Bucket} --key ${accessKeyId}`)
    const url = await getSignedUrl(client, new GetObjectCommand({ Bucket, Key: 'parts' }))
    expect((await fetch(url, { headers: { range: 'bytes=0-1' } })).status).toBe(206)
    expect((await svc(argv`buckets keys revoke ${Bucket} --key ${accessKeyId}`)).status).toBe(0)
    expect(await nameOf(read(client, 'parts'))).toBe('InvalidAccessKeyId')
    expect((await fetch(url)).status).toBe(403)
    const next = s3ClientOf({ ...remote, keys: successor })
    expect(await nameOf(put(next, 'parts', 'replaced'))).toBe('no failure')
    expect(await read(next, 'parts')).toBe('replaced')
    next.destroy()
    const log = app.server.lines.join('\n')
    for (const { secretAccessKey } of [remote.keys, successor]) {
      expect(log).not.toContain(secretAccessKey)
    }
  })
})
