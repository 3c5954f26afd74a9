/** Variables and secrets, from the operator to the Functions, and through a key rotation. */
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Application, action, application, mutation, query, string } from './application.ts'
import { filesBelow, placesOf } from './canaries.ts'
import { CLIENT, run, SERVER } from './harness.ts'

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
  // What leaves is a part of the secret: enough to see that it is the one.
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
/** Of every server that ran. */
const log: string[] = []
let app: Application

beforeAll(async () => {
  app = await application((workspace) =>
    writeFileSync(join(workspace, 'functions', 'settings.ts'), FUNCTIONS),
  )
})
afterAll(async () => {
  await app?.of.dispose()
})

const remote = () => ['--remote', '--root', app.of.productRoot]
const config = (...args: string[]) => app.svc(['config', ...args, ...remote()])

/** Sets API_KEY from standard input. */
async function setSecret(): Promise<string> {
  const secret = newSecret()
  secrets.push(secret)
  const set = await run([CLIENT, 'config', 'set', 'API_KEY', '--secret', ...remote(), '--json'], {
    environment: app.of.clientEnvironment,
    directory: app.of.directory,
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
  const environment = { ...app.of.environment, SERVICE_PRODUCT_ROOT: app.of.productRoot }
  return run([SERVER, 'rotate-keys'], { environment, directory: app.of.directory })
}

const keyring = () => JSON.parse(readFileSync(join(app.of.productRoot, 'keyring.json'), 'utf8'))

describe('configuration', () => {
  test('a variable is seen by the next call, kept result or not', async () => {
    expect(await read(query, 'greeting')).toEqual(NULL)
    for (const value of ['hello', 'good morning']) {
      await config('set', 'GREETING', value)
      for (let i = 0; i < 3; i++) expect(await read(query, 'greeting')).toEqual(string(value))
      expect(await read(mutation, 'greet')).toEqual(string(value))
    }
  })

  test('a secret is seen by the next call of the Action that names it alone', async () => {
    expect((await action(app, { function: 'settings.tail' })).body.error.code).toBe(
      'FUNCTION_FAILED',
    )
    for (let i = 0; i < 2; i++) {
      const secret = await setSecret()
      expect(await read(action, 'tail')).toEqual(string(secret.slice(-4)))
    }
    const refused = await action(app, { function: 'settings.unnamed' })
    expect([refused.status, refused.body.error.code]).toEqual([500, 'FUNCTION_FAILED'])
  })

  test('a secret from an environment variable is the same', async () => {
    const secret = newSecret()
    secrets.push(secret)
    const args = ['config', 'set', 'API_KEY', '--secret', '--value-env', 'FROM_CI', ...remote()]
    await app.svc(args, { FROM_CI: secret })
    expect(await read(action, 'tail')).toEqual(string(secret.slice(-4)))
  })

  test('lists and history show names and changes, and no secret', async () => {
    const list = await config('list')
    expect(list).toMatchObject({
      revision: '5',
      entries: [
        { name: 'API_KEY', kind: 'secret', revision: '5' },
        { name: 'GREETING', kind: 'variable', value: 'good morning', revision: '2' },
      ],
    })
    expect(Object.keys(list.entries[0])).not.toContain('value')
    const history = await config('history')
    expect(history.entries.map(({ revision }: { revision: string }) => revision)).toEqual([
      ...['5', '4', '3', '2', '1'],
    ])
    const shown = await app.of.svc(['config', 'list', ...remote()])
    for (const secret of secrets) {
      expect(JSON.stringify([list, history]) + shown.stdout + shown.stderr).not.toContain(secret)
    }
  })

  test('a change that expects another revision ends with 4', async () => {
    const stale = ['config', 'set', 'GREETING', 'late', '--expected', '1', ...remote()]
    expect((await app.of.svc(stale)).status).toBe(4)
    expect(await read(query, 'greeting')).toEqual(string('good morning'))
  })
})

describe('rotate-keys', () => {
  test('refuses a root that a server has', async () => {
    const before = keyring()
    const refused = await rotate()
    expect([refused.status, refused.stderr]).toEqual([
      expect.any(Number),
      expect.stringContaining('SERVER_PRODUCT_ROOT_LOCKED'),
    ])
    expect(refused.status).not.toBe(0)
    expect(keyring()).toEqual(before)
  })

  test('on a stopped root makes a new key under which everything is as it was', async () => {
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
    expect((await config('list')).revision).toBe('5')
  })

  test('secrets that are set from then on survive a crash of the server', async () => {
    const secret = await setSecret()
    log.push(...app.server.lines)
    await app.restart('kill')
    expect(await read(action, 'tail')).toEqual(string(secret.slice(-4)))
  })
})

test('a name that is unset is gone for the next call', async () => {
  await config('unset', 'GREETING')
  expect(await read(query, 'greeting')).toEqual(NULL)
  const missing = await app.of.svc(['config', 'unset', 'GREETING', ...remote()])
  expect(missing.status).toBe(7)
})

test('no secret is in the Product root, in the state or in the log', async () => {
  const lines = Buffer.from([...log, ...app.server.lines].join('\n'))
  const places = new Map([...filesBelow(app.of.directory), ['log', lines] as const])
  expect(places.has(join('product', 'control.db'))).toBe(true)
  expect(lines.includes('ctx.config.secret')).toBe(true)
  for (const secret of secrets) expect(placesOf(secret, places)).toEqual([])
})
