/**
 * kill -9 of the server at random moments of uploads: every file that was acknowledged downloads
 * with its digest, no file lacks its bytes, and no bytes lack a file once the server has started.
 */
import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SEED } from '../build/testing/seeds.ts'
import { sha256Hex } from '../src/system/digests.ts'
import { type Application, application, id, query } from './application.ts'
import { type Grant, grantDownload, grantUpload, writeFileFunctions } from './files/workspace.ts'
import { productEnvironment, run, SERVER } from './harness.ts'

const KILLS = process.env.SVC_TEST_LONG === '1' ? 100 : 5
const UPLOADS = 6
const BYTES_MAX = 4 * 1024 * 1024

let app: Application
beforeAll(async () => {
  app = await application(writeFileFunctions)
})
afterAll(() => app?.installation.dispose())

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
  for (let kill = 0; kill < KILLS; kill++) {
    const grants = await Promise.all(
      Array.from({ length: UPLOADS }, () => grantUpload(app, BYTES_MAX)),
    )
    const uploads = grants.map((grant, i) => {
      return upload(grant, randomBytes(1 + (((SEED + kill * 7 + i) * 7_919) % BYTES_MAX)))
    })
    await new Promise((resolve) => setTimeout(resolve, (SEED * (kill + 7)) % 150))
    app.server.kill()
    await app.server.ended
    all.push(...(await Promise.all(uploads)))
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
  await expect.poll(stored, { timeout: 60_000 }).toEqual([...present].sort())
  expect(readdirSync(join(app.installation.productRoot, 'files/temporary'))).toEqual([])
  await app.server.stop()
  const verified = await run([SERVER, 'verify-storage'], {
    environment: { ...app.installation.environment, ...productEnvironment(app.installation) },
  })
  expect(verified.stdout).toContain('No file is damaged.')
  expect(verified.status).toBe(0)
  await app.start()
})
