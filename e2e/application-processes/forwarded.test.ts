/**
 * Files, the S3-compatible API and development through application processes.
 *
 * @module-tag slow
 */
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { GetObjectCommand, HeadObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { s3ClientOf } from '../../testing/files/s3-remotes.ts'
import { superviseProcess } from '../../testing/servers/supervisor.ts'
import { type Application, application, createKey, type Json } from '../application.ts'
import { argv } from '../argv.ts'
import { grantDownload, grantUpload, signDownload, writeFileFunctions } from '../files/workspace.ts'
import { CLIENT, run } from '../harness.ts'
import { connectToAll } from './processes.ts'

/** Each is sent over a connection of its own, so that both processes pass some of them on. */
const TRANSFERS = 12
const BYTES = 700_000

let app: Application

beforeAll(async () => {
  app = await application(writeFileFunctions, {
    SERVICE_APPLICATION_PROCESSES: '2',
    SERVICE_S3_HOST: 'localhost',
  })
})
afterAll(() => app?.installation.dispose())

const at = (name: string) => join(app.installation.directory, name)
const remote = () => argv`--remote --root ${app.installation.productRoot}`
const each = <T>(transfer: (number: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: TRANSFERS }, (_, number) => transfer(number)))

async function curl(...args: string[]): Promise<string> {
  const { status, stdout, stderr } = await run(['/usr/bin/curl', '-sS', '--fail', ...args])
  expect(status, stderr).toBe(0)
  return stdout
}

test('bytes pass through every process unchanged, whole and by range', async () => {
  await each(async (number) => {
    const bytes = randomBytes(BYTES)
    writeFileSync(at(`up-${number}`), bytes)
    const grant = await grantUpload(app, BYTES)
    const url = app.server.application + grant.path
    const headers = ['-H', `Authorization: Bearer ${grant.token}`]
    const type = ['-H', 'Content-Type: application/octet-stream']
    const { file } = JSON.parse(await curl('-T', at(`up-${number}`), ...type, ...headers, url))
    expect(file.size).toBe(String(BYTES))
    const download = await grantDownload(app, file.fileId)
    const from = app.server.application + download.path
    const bearer = ['-H', `Authorization: Bearer ${download.token}`]
    await curl('-o', at(`down-${number}`), ...bearer, from)
    expect(readFileSync(at(`down-${number}`)).equals(bytes)).toBe(true)
    const signed = app.server.application + (await signDownload(app, file.fileId))
    await curl('-o', at(`part-${number}`), '-r', '1000-1999', signed)
    expect(readFileSync(at(`part-${number}`)).equals(bytes.subarray(1_000, 2_000))).toBe(true)
    expect(await curl('-I', signed)).toMatch(new RegExp(`^content-length: ${BYTES}\r$`, 'im'))
  })
})

test('S3 clients store and read objects through every process', async () => {
  const Bucket = 'objects'
  await app.svc(argv`buckets create ${Bucket} ${remote()}`)
  const keys = await app.svc(
    argv`buckets keys issue ${Bucket} --name all --access write ${remote()}`,
  )
  const { accessKeyId, secretAccessKey } = keys
  const endpoint = `${app.server.application}/v1/s3`
  const client = s3ClientOf({ endpoint, keys: { accessKeyId, secretAccessKey } })
  try {
    await each(async (number) => {
      const Key = `folder é/${number}`
      const bytes = randomBytes(BYTES)
      await client.send(new PutObjectCommand({ Bucket, Key, Body: bytes }))
      const { ContentLength } = await client.send(new HeadObjectCommand({ Bucket, Key }))
      expect(ContentLength).toBe(BYTES)
      const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }))
      expect(Buffer.from(await Body!.transformToByteArray()).equals(bytes)).toBe(true)
    })
  } finally {
    client.destroy()
  }
})

const saved = (text: string) => `import { query, v } from 'svc'
export const read = query({
  clients: ['confidential'], returns: v.string(), handler: () => '${text}',
})
`

test('what svc dev and svc freeze have stored is visible to every process', async () => {
  const { key } = await createKey(app, { kind: 'development', scopes: 'workspace' })
  const { key: caller } = await createKey(app, { scopes: 'query,workspace' })
  const { workspace } = app.installation
  const environment = { ...app.installation.clientEnvironment, KEY: key }
  const attach = argv`--attach ${app.server.application!} --workspace ${workspace} --key-env KEY`
  const developer = superviseProcess(argv`${CLIENT} dev ${attach} --json`, {
    signal: 'INT',
    directory: app.installation.directory,
    environment,
  })
  const connections = await connectToAll(app, 3)
  try {
    const events = createInterface({ input: developer.stdout })[Symbol.asyncIterator]()
    const next = async (name: string): Promise<Json> => {
      for (let event = await events.next(); !event.done; event = await events.next()) {
        const record = JSON.parse(event.value)
        if (record.event === name) return record
      }
      throw new Error('svc dev has ended')
    }
    const attached = await next('attached')
    await next('synchronized')
    for (const text of ['one', 'two']) {
      writeFileSync(join(workspace, 'functions/saved.ts'), saved(text))
      const { revisionId } = await next('synchronized')
      const freeze = argv`freeze ${attached.workspace} --revision ${revisionId}`
      await app.svc(argv`${freeze} --url ${app.server.application!} --key-env KEY`, { KEY: key })
      const answers = connections.map(({ connection }) =>
        connection.call({
          kind: 'query',
          function: 'saved.read',
          target: `workspace:${attached.workspace}`,
          key: caller,
        }),
      )
      for (const { status, body } of await Promise.all(answers)) {
        expect([status, body.result]).toEqual([200, { type: 'string', value: text }])
      }
    }
  } finally {
    for (const { connection } of connections) connection.close()
    developer.kill()
    await developer.ended
  }
})
