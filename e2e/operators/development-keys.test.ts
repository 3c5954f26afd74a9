/**
 * Two developers with development keys and one shared Environment: `svc dev --attach` and
 * `svc freeze` against the compiled server, which is killed in between.
 *
 * @module-tag slow
 */
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Supervised, superviseProcess } from '../../testing/servers/supervisor.ts'
import { type Application, application, createKey, type Json, query } from '../application.ts'
import { argv } from '../argv.ts'
import { CLIENT } from '../harness.ts'

let app: Application
/** The development key. */
let key: string
/** A key of an application that may call Workspace targets. */
let caller: string
const developers: Developer[] = []

beforeAll(async () => {
  app = await application()
  ;({ key } = await createKey(app, { kind: 'development', scopes: 'workspace' }))
  ;({ key: caller } = await createKey(app, { scopes: 'query,workspace' }))
})
afterAll(async () => {
  for (const developer of developers) developer.process.kill()
  await app?.installation.dispose()
})

class Developer {
  readonly process: Supervised
  readonly #directory: string
  readonly #lines: AsyncIterator<string>
  constructor(directory: string, options: readonly string[] = []) {
    this.#directory = directory
    this.process = superviseProcess(
      argv`
        ${CLIENT} dev --attach ${app.server.application!} --workspace ${directory}
        --key-env KEY --json ${options}
      `,
      {
        signal: 'INT',
        directory: app.installation.directory,
        environment: { ...app.installation.clientEnvironment, KEY: key },
      },
    )
    this.#lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]()
    developers.push(this)
  }

  /** Returns the next event with this name. Events in between are of no interest. */
  async next(name: string): Promise<Json> {
    for (;;) {
      const { value, done } = await this.#lines.next()
      if (done) throw new Error('svc dev has ended')
      const event = JSON.parse(value)
      if (event.event === name) return event
    }
  }

  /** Returns the exit code, and the failure that it ends with, which has several lines. */
  async failure(): Promise<[number, Json]> {
    const lines: string[] = []
    for (let line = await this.#lines.next(); !line.done; line = await this.#lines.next()) {
      if (!line.value.startsWith('{"event"')) lines.push(line.value)
    }
    return [await this.process.ended, JSON.parse(lines.join('\n')).error]
  }

  /** Saves a Function that answers with the text. */
  save(text: string): void {
    const source = `import { query, v } from 'svc'
export const read = query({
  clients: ['confidential'], returns: v.string(), handler: () => ${text},
})
`
    writeFileSync(join(this.#directory, 'functions/saved.ts'), source)
  }
}

const remote = () => argv`--remote --root ${app.installation.productRoot}`
const answerOf = async (target: string) => {
  const { status, body } = await query(app, { function: 'saved.read', target, key: caller })
  return status === 200 ? body.result.value : `${status} ${body.error.code}`
}

async function freeze(options: readonly string[]): Promise<[number | null, Json]> {
  const line = argv`freeze ${options} --url ${app.server.application!} --key-env KEY --json`
  const { status, stdout } = await app.installation.svc(line, { KEY: key })
  return [status, JSON.parse(stdout)]
}

test('developers synchronize, freeze what others call, and never overwrite another', async () => {
  const { workspaces, channels } = await app.svc(argv`status ${remote()}`)
  const [{ name, revisionId }] = workspaces
  const ana = new Developer(app.installation.workspace)
  expect(await ana.next('attached')).toMatchObject({ workspace: name, revisionId })
  // The Workspace equals the released HEAD.
  expect(await ana.next('synchronized')).toMatchObject({ revisionId, state: 'validated' })

  ana.save(`'one'`)
  const first = await ana.next('synchronized')
  expect(first).toMatchObject({ state: 'published', warnings: [] })
  expect(await answerOf(`workspace:${name}`)).toBe('404 TARGET_NOT_FOUND')
  expect(await freeze(argv`${name} --revision ${revisionId}`)).toMatchObject([
    0,
    { state: 'validated' },
  ])
  const [status, frozen] = await freeze(argv`${name}`)
  expect([status, frozen]).toMatchObject([0, { revisionId: first.revisionId, state: 'validated' }])
  expect(await answerOf(`workspace:${name}`)).toBe('one')
  expect(await answerOf(`release:${frozen.releaseId}`)).toBe('one')
  expect((await app.svc(argv`status ${remote()}`)).channels).toEqual(channels)

  ana.save('(')
  expect(await ana.next('rejected')).toMatchObject({ code: 'WORKSPACE_INVALID' })
  expect(await answerOf(`workspace:${name}`)).toBe('one')

  const copy = join(app.installation.directory, 'copy')
  cpSync(app.installation.workspace, copy, { recursive: true })
  writeFileSync(join(copy, 'functions/saved.ts'), '')
  const bob = new Developer(copy, argv`--freeze`)
  expect(await bob.next('attached')).toMatchObject({ revisionId: first.revisionId })
  await bob.next('synchronized')
  bob.save(`'two'`)
  expect(await bob.next('synchronized')).toMatchObject({ state: 'validated' })
  expect(await answerOf(`workspace:${name}`)).toBe('two')

  ana.save(`'three'`)
  const [ended, conflict] = await ana.failure()
  expect([ended, conflict.code]).toEqual([4, 'PRODUCT_CAS_CONFLICT'])
  expect(JSON.stringify(conflict)).toContain('another developer has synchronized it')
  expect(await answerOf(`workspace:${name}`)).toBe('two')

  await app.restart('kill')
  bob.save(`'four'`)
  expect(await bob.next('synchronized')).toMatchObject({ state: 'validated' })
  expect(await answerOf(`workspace:${name}`)).toBe('four')
  expect(await bob.process.stop()).toBe(0)
  const { items } = await app.svc(argv`audit --operation product.workspace.publish`)
  expect(items[0]).toMatchObject({ actor: null, credentialId: expect.stringMatching(/^crd_/) })
})

test('an Environment without development keys rejects them and names the remedy', async () => {
  await app.svc(argv`environments update ${remote()} --purpose production`)
  const ana = new Developer(app.installation.workspace)
  const [ended, rejected] = await ana.failure()
  expect([ended, rejected.code]).toEqual([7, 'ROUTE_NOT_FOUND'])
  expect(JSON.stringify(rejected)).toContain('takes no development keys')
  const [status, failure] = await freeze(argv`chat`)
  expect([status, failure.error.code]).toEqual([7, 'ROUTE_NOT_FOUND'])
})
