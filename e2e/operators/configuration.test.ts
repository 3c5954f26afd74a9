/**
 * Variables and secrets on their way from the operator to Functions, and through a key rotation.
 *
 * @module-tag slow
 */
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Application, action, application, mutation, query, string } from '../application.ts'
import { argv } from '../argv.ts'
import { filesBelow, findLocations } from '../canaries.ts'
import { CLIENT, run, SERVER } from '../harness.ts'

const FUNCTIONS = `
  import { action, mutation, query } from 'svc'

  export const greeting = query({
    clients: ['confidential'],
    handler: (ctx) => ctx.config.variable('GREETING'),
  })
  export const greet = mutation({
    clients: ['confidential'],
    handler: (ctx) => ctx.config.variable('GREETING'),
  })
  // Only a part of the secret leaves: enough to recognise it.
  export const tail = action({
    clients: ['confidential'],
    uses: { secrets: ['API_KEY'] },
    handler: async (ctx) => (await ctx.config.secret('API_KEY')).slice(-4),
  })
  export const unnamed = action({
    clients: ['confidential'],
    handler: (ctx) => ctx.config.secret('API_KEY'),
  })
`

const newSecret = () => randomBytes(32).toString('base64url')
const secrets: string[] = []
/** Log lines of the servers that were stopped. */
const log: string[] = []
let app: Application

beforeAll(async () => {
  app = await application((workspace) =>
    writeFileSync(join(workspace, 'functions', 'settings.ts'), FUNCTIONS),
  )
})
afterAll(async () => {
  await app?.installation.dispose()
})

const remote = () => argv`--remote --root ${app.installation.productRoot}`
const config = (args: readonly string[]) => app.svc(argv`config ${args} ${remote()}`)

/** Sets API_KEY through standard input. */
async function setSecret(): Promise<string> {
  const secret = newSecret()
  secrets.push(secret)
  const set = await run(argv`${CLIENT} config set API_KEY --secret ${remote()} --json`, {
    environment: app.installation.clientEnvironment,
    directory: app.installation.directory,
    input: `${secret}\n`,
  })
  expect([set.status, set.stderr]).toEqual([0, ''])
  expect(JSON.parse(set.stdout).change).toMatchObject({ name: 'API_KEY', kind: 'secret' })
  return secret
}

const read = async (call: typeof query, name: string) =>
  (await call(app, { function: `settings.${name}` })).body.result
const NULL = { type: 'null' }

function rotate() {
  const environment = {
    ...app.installation.environment,
    SERVICE_PRODUCT_ROOT: app.installation.productRoot,
  }
  return run(argv`${SERVER} rotate-keys`, { environment, directory: app.installation.directory })
}

const keyring = () =>
  JSON.parse(readFileSync(join(app.installation.productRoot, 'keyring.json'), 'utf8'))

describe('configuration', () => {
  test('a variable is visible to the next call, with or without a cached result', async () => {
    expect(await read(query, 'greeting')).toEqual(NULL)
    for (const value of ['hello', 'good morning']) {
      await config(argv`set GREETING ${value}`)
      for (let i = 0; i < 3; i++) expect(await read(query, 'greeting')).toEqual(string(value))
      expect(await read(mutation, 'greet')).toEqual(string(value))
    }
  })

  test('a secret is visible only to the next call of the Action that declares it', async () => {
    expect((await action(app, { function: 'settings.tail' })).body.error.code).toBe(
      'FUNCTION_FAILED',
    )
    for (let i = 0; i < 2; i++) {
      const secret = await setSecret()
      expect(await read(action, 'tail')).toEqual(string(secret.slice(-4)))
    }
    const undeclared = await action(app, { function: 'settings.unnamed' })
    expect([undeclared.status, undeclared.body.error.code]).toEqual([500, 'FUNCTION_FAILED'])
  })

  test('a secret can be set from an environment variable', async () => {
    const secret = newSecret()
    secrets.push(secret)
    const args = argv`config set API_KEY --secret --value-env FROM_CI ${remote()}`
    await app.svc(args, { FROM_CI: secret })
    expect(await read(action, 'tail')).toEqual(string(secret.slice(-4)))
  })

  test('the list and the history contain names and changes, and no secret', async () => {
    const list = await config(argv`list`)
    expect(list).toMatchObject({
      revision: '5',
      entries: [
        { name: 'API_KEY', kind: 'secret', revision: '5' },
        { name: 'GREETING', kind: 'variable', value: 'good morning', revision: '2' },
      ],
    })
    expect(Object.keys(list.entries[0])).not.toContain('value')
    const history = await config(argv`history`)
    expect(history.entries.map(({ revision }: { revision: string }) => revision)).toEqual([
      '5',
      '4',
      '3',
      '2',
      '1',
    ])
    const shown = await app.installation.svc(argv`config list ${remote()}`)
    for (const secret of secrets) {
      expect(JSON.stringify([list, history]) + shown.stdout + shown.stderr).not.toContain(secret)
    }
  })

  test('a change that expects another revision exits with status 4', async () => {
    const stale = argv`config set GREETING late --expected 1 ${remote()}`
    expect((await app.installation.svc(stale)).status).toBe(4)
    expect(await read(query, 'greeting')).toEqual(string('good morning'))
  })
})

describe('rotate-keys', () => {
  test('rotate-keys rejects a root that a server has opened', async () => {
    const before = keyring()
    const rejected = await rotate()
    expect([rejected.status, rejected.stderr]).toEqual([
      expect.any(Number),
      expect.stringContaining('SERVER_PRODUCT_ROOT_LOCKED'),
    ])
    expect(rejected.status).not.toBe(0)
    expect(keyring()).toEqual(before)
  })

  test('rotate-keys gives a stopped root a new key and keeps variables and secrets', async () => {
    const [first] = keyring().keys
    await app.server.stop()
    log.push(...app.server.lines)
    const rotated = await rotate()
    expect([rotated.status, rotated.stderr]).toEqual([0, ''])
    expect(rotated.stdout).toContain('1 secrets are sealed under it.')
    const { keys, active } = keyring()
    expect(keys[0]).toEqual(first)
    expect([keys.length, keys[1].id]).toEqual([2, active])
    expect(rotated.stdout).not.toContain(keys[1].key)
    await app.start()
    expect(await read(query, 'greeting')).toEqual(string('good morning'))
    expect(await read(action, 'tail')).toEqual(string(secrets.at(-1)!.slice(-4)))
    expect((await config(argv`list`)).revision).toBe('5')
  })

  test('secrets that are set after a rotation survive a crash of the server', async () => {
    const secret = await setSecret()
    log.push(...app.server.lines)
    await app.restart('kill')
    expect(await read(action, 'tail')).toEqual(string(secret.slice(-4)))
  })
})

test('a removed name is absent in the next call', async () => {
  await config(argv`unset GREETING`)
  expect(await read(query, 'greeting')).toEqual(NULL)
  const missing = await app.installation.svc(argv`config unset GREETING ${remote()}`)
  expect(missing.status).toBe(7)
})

test('no secret is in the Product root, the state directory or the log', async () => {
  const lines = Buffer.from([...log, ...app.server.lines].join('\n'))
  const locations = new Map([...filesBelow(app.installation.directory), ['log', lines] as const])
  expect(locations.has(join('product', 'control.db'))).toBe(true)
  expect(lines.includes('ctx.config.secret')).toBe(true)
  for (const secret of secrets) expect(findLocations(secret, locations)).toEqual([])
})
