/**
 * A short main story with documents in a PostgreSQL of its own, which is stopped and killed.
 *
 * @module-tag slow
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OwnCluster, ownCluster } from '../../testing/databases/cluster.ts'
import { startServer } from '../../testing/servers/server-process.ts'
import {
  type Application,
  application,
  fields,
  id,
  mutation,
  operationId,
  query,
  string,
  UNTYPED,
} from '../application.ts'
import { argv } from '../argv.ts'
import { productEnvironment, run, SERVER } from '../harness.ts'

let cluster: OwnCluster
let app: Application
let environment: Readonly<Record<string, string>>

beforeAll(async () => {
  cluster = await ownCluster()
  // The file is in the cluster's folder, since the installation does not exist yet.
  const file = `${cluster.folder}/document-database-url`
  writeFileSync(file, `${cluster.url}\n`, { mode: 0o600 })
  app = await application(undefined, { SERVICE_PLATFORM_DATABASE_URL_FILE: file })
  environment = {
    ...app.installation.environment,
    ...productEnvironment(app.installation),
    SERVICE_PLATFORM_DATABASE_URL_FILE: file,
  }
})

afterAll(async () => {
  await app?.installation.dispose()
  await cluster?.dispose()
})

const create = (name: string, requestedId = operationId()) =>
  mutation(app, {
    function: 'channels.create',
    arguments: { name: string(name), author: string('Ada') },
    operationId: requestedId,
  })

async function names(): Promise<string[]> {
  const listed = await query(app, { function: 'channels.list' })
  expect(listed.status).toBe(200)
  return listed.body.result.value.map((channel: unknown) => fields(channel).name.value)
}

describe('documents in PostgreSQL', () => {
  test('a Mutation is durable when the server is stopped or killed', async () => {
    const operation = operationId()
    const created = await create('general', operation)
    expect(created.status).toBe(200)
    const channel = created.body.result.value
    const sent = await mutation(app, {
      function: 'messages.send',
      arguments: { channel: id(channel), author: string('Ada'), body: string('hello') },
    })
    expect(Number(sent.body.metadata.commitSequence)).toBeGreaterThan(
      Number(created.body.metadata.commitSequence),
    )
    for (const how of ['stop', 'kill'] as const) {
      await app.restart(how)
      const listed = await query(app, {
        function: 'messages.list',
        arguments: { channel: id(channel) },
      })
      expect(listed.body.metadata.snapshotSequence).toBe(sent.body.metadata.commitSequence)
      const [newest] = listed.body.result.value
      expect(fields(newest)).toMatchObject({ _id: sent.body.result, body: string('hello') })
      const replay = await create('general', operation)
      expect(replay.body.result).toEqual(created.body.result)
      expect(replay.body.metadata).toEqual({ ...created.body.metadata, replayed: true })
    }
  })

  test.each(['stop', 'kill'] as const)(
    'the server survives a %s of PostgreSQL without a restart',
    async (how) => {
      const operation = operationId()
      await create(`before ${how}`, operation)
      await cluster[how]()
      const rejected = await create(`while ${how}`)
      expect(rejected.status).toBe(503)
      expect(rejected.body.error).toMatchObject({ code: 'UNAVAILABLE', retryable: true })
      await cluster.start()
      await expect.poll(async () => (await create(`after ${how}`)).status).toBe(200)
      expect(await names()).toEqual(expect.arrayContaining([`before ${how}`, `after ${how}`]))
      expect(await names()).not.toContain(`while ${how}`)
      expect((await create(`before ${how}`, operation)).body.metadata.replayed).toBe(true)
    },
  )

  test('a changed Workspace gets its new index with all existing documents', async () => {
    const schema = join(app.installation.workspace, 'schema.ts')
    const functions = join(app.installation.workspace, 'functions/channels.ts')
    const before = await names()
    const unique = `.unique('byName', ['name'])`
    const source = readFileSync(schema, 'utf8')
    expect(source).toContain(unique)
    writeFileSync(schema, source.replace(unique, `${unique}.index('byTopic', ['topic', 'name'])`))
    const list = readFileSync(functions, 'utf8')
    expect(list).toContain(".index('byName').take")
    writeFileSync(functions, list.replace(".index('byName').take", ".index('byTopic').take"))
    await app.svc(argv`
      release --remote --root ${app.installation.productRoot} --channel production
      ${UNTYPED}
    `)
    expect((await names()).sort()).toEqual(before.sort())
  })

  test('check and migrate print the database and never its password', async () => {
    const password = new URL(cluster.url).password
    const check = await run(argv`${SERVER} check`, { environment })
    expect([check.status, check.stdout]).toEqual([
      0,
      expect.stringMatching(/Documents +postgres at 127\.0\.0\.1:/),
    ])
    const migrate = await run(argv`${SERVER} migrate`, { environment })
    expect(migrate.stdout).toMatch(/^The document database is at schema version \d+ already\.$/m)
    const printed = [check.stdout, check.stderr, migrate.stderr, ...app.server.lines].join('\n')
    expect(printed).not.toContain(password)
  })

  test('a root with documents in PostgreSQL cannot be served without it', async () => {
    await app.server.stop()
    const { SERVICE_PLATFORM_DATABASE_URL_FILE: _, ...rest } = environment
    const starting = startServer({
      executable: SERVER,
      environment: rest,
      directory: app.installation.directory,
    })
    await expect(starting).rejects.toThrow(/SERVER_PRODUCT_ROOT_INVALID.*documents are in Postgre/)
  })
})
