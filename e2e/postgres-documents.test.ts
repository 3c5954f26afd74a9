/** The main story in short, with documents in a PostgreSQL of their own that comes and goes. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OwnCluster, ownCluster } from '../build/testing/databases/cluster.ts'
import { startServer } from '../build/testing/servers/server-process.ts'
import {
  type Application,
  application,
  fields,
  id,
  mutation,
  operationId,
  query,
  string,
} from './application.ts'
import { productEnvironment, run, SERVER } from './harness.ts'

let cluster: OwnCluster
let app: Application
let environment: Readonly<Record<string, string>>

beforeAll(async () => {
  cluster = await ownCluster()
  // The file lies beside the cluster's data, since the installation is made by the story.
  const file = `${cluster.folder}/document-database-url`
  writeFileSync(file, `${cluster.url}\n`, { mode: 0o600 })
  app = await application(undefined, { SERVICE_PLATFORM_DATABASE_URL_FILE: file })
  environment = {
    ...app.of.environment,
    ...productEnvironment(app.of),
    SERVICE_PLATFORM_DATABASE_URL_FILE: file,
  }
})

afterAll(async () => {
  await app?.of.dispose()
  await cluster?.dispose()
})

const create = (name: string, operation = operationId()) =>
  mutation(app, {
    function: 'channels.create',
    arguments: { name: string(name), author: string('Ada') },
    operationId: operation,
  })

async function names(): Promise<string[]> {
  const listed = await query(app, { function: 'channels.list' })
  expect(listed.status).toBe(200)
  return listed.body.result.value.map((channel: unknown) => fields(channel).name.value)
}

describe('documents in PostgreSQL', () => {
  test('a Mutation is read back, also after the server stopped or was killed', async () => {
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
    'the server survives a %s of PostgreSQL without a restart of its own',
    async (how) => {
      const operation = operationId()
      await create(`before ${how}`, operation)
      await cluster[how]()
      const refused = await create(`while ${how}`)
      expect(refused.status).toBe(503)
      expect(refused.body.error).toMatchObject({ code: 'UNAVAILABLE', retryable: true })
      await cluster.start()
      await expect.poll(async () => (await create(`after ${how}`)).status).toBe(200)
      expect(await names()).toEqual(expect.arrayContaining([`before ${how}`, `after ${how}`]))
      expect(await names()).not.toContain(`while ${how}`)
      expect((await create(`before ${how}`, operation)).body.metadata.replayed).toBe(true)
    },
  )

  test('a changed Workspace gets its new index, and its documents are all in it', async () => {
    const schema = join(app.of.workspace, 'schema.ts')
    const functions = join(app.of.workspace, 'functions/channels.ts')
    const before = await names()
    const unique = `.unique('byName', ['name'])`
    const source = readFileSync(schema, 'utf8')
    expect(source).toContain(unique)
    writeFileSync(schema, source.replace(unique, `${unique}.index('byTopic', ['topic', 'name'])`))
    const list = readFileSync(functions, 'utf8')
    expect(list).toContain(".index('byName').take")
    writeFileSync(functions, list.replace(".index('byName').take", ".index('byTopic').take"))
    const root = ['--root', app.of.productRoot]
    await app.svc(['release', '--remote', ...root, '--channel', 'production'])
    expect((await names()).sort()).toEqual(before.sort())
  })

  test('check and migrate name the database, never its password', async () => {
    const password = new URL(cluster.url).password
    const check = await run([SERVER, 'check'], { environment })
    expect([check.status, check.stdout]).toEqual([
      0,
      expect.stringMatching(/Documents +postgres at 127\.0\.0\.1:/),
    ])
    const migrate = await run([SERVER, 'migrate'], { environment })
    expect(migrate.stdout).toContain('The document database is at schema version 1 already.\n')
    const said = [check.stdout, check.stderr, migrate.stderr, ...app.server.lines].join('\n')
    expect(said).not.toContain(password)
  })

  test('a root whose documents are in PostgreSQL is never served without it', async () => {
    await app.server.stop()
    const { SERVICE_PLATFORM_DATABASE_URL_FILE: _, ...rest } = environment
    const starting = startServer({
      executable: SERVER,
      environment: rest,
      directory: app.of.directory,
    })
    await expect(starting).rejects.toThrow(/SERVER_PRODUCT_ROOT_INVALID.*documents are in Postgre/)
  })
})
