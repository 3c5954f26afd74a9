import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { listNewChildren } from '../../../testing/development/child-processes.ts'
import {
  LocalDevelopment,
  notesFunctions,
  notesSchema,
} from '../../../testing/development/local-development.ts'
import { startTypeChecker } from '../type-check/type-check.ts'

let dev: LocalDevelopment
beforeEach(() => {
  dev = new LocalDevelopment()
})
afterEach(() => dev.dispose())

const list = async () => (await dev.call('notes.list')).result?.value
const add = (text: string) => dev.call('notes.add', { text }, { kind: 'mutation' })

test('a save is served on both targets, and documents stay', async () => {
  const { targets, try: sample } = await dev.start()
  expect(targets).toEqual(['channel:dev', 'workspace:default'])
  expect(sample).toBe(`svc call notes.fail --root ${dev.root}`)
  expect([await dev.version(), await dev.version('workspace:default')]).toEqual(['1', '1'])
  expect(await add('kept')).toMatchObject({ status: 'ok' })
  const served = dev.next('served')
  dev.write('functions/notes.ts', notesFunctions(2))
  expect((await served).changes.functions).toEqual({ added: [], removed: [], changed: [] })
  expect([await dev.version(), await dev.version('workspace:default')]).toEqual(['2', '2'])
  expect(await list()).toMatchObject([{ value: 'kept' }])
  expect(existsSync(join(dev.workspace, '_generated/api.ts'))).toBe(true)
})

test('invalid source is explained, and the last valid code is still served', async () => {
  await dev.start()
  const rejected = dev.next('rejected')
  dev.write('functions/notes.ts', `${notesFunctions(2)}\nexport const = 1`)
  const { code, details } = await rejected
  expect(code).toBe('WORKSPACE_INVALID')
  expect(details.join('\n')).toMatch(/functions\/notes\.ts:\d+:\d+[\s\S]*> \d+ \| export const = 1/)
  expect(await dev.version()).toBe('1')
  const served = dev.next('served')
  dev.write('functions/notes.ts', notesFunctions(3))
  await served
  expect(await dev.version()).toBe('3')
})

test('types are checked after the code is served, and a fix is reported', async () => {
  const children = listNewChildren()
  await dev.start({ startTypeChecker })
  const wrong = `${notesFunctions(2)}\nexport const count: string = 1`
  const found = dev.next('types')
  dev.write('functions/notes.ts', wrong)
  const { details } = await found
  expect(details).toEqual([expect.stringMatching(/^functions\/notes\.ts:\d+:14\n/)])
  expect(await dev.version()).toBe('2')
  const fixed = dev.next('types')
  // The bundle stays the same: only the type changes.
  dev.write('functions/notes.ts', wrong.replace(': string', ': number'))
  expect((await fixed).details).toEqual([])
  await dev.stop()
  await expect.poll(children).toEqual([])
})

test('a schema that documents do not fit names them, and the old code is served', async () => {
  await dev.start()
  await add('first')
  await add('second')
  const rejected = dev.next('rejected')
  dev.write('schema.ts', notesSchema('stars: v.int64()'))
  const { message, details, next } = await rejected
  expect(message).toBe('The stored documents do not fit the new schema.')
  expect(details).toEqual([
    expect.stringMatching(/^documents:notes: 2 stored documents .*notes_[0-9A-Z]{26} .*stars/),
  ])
  expect(next.join(' ')).toMatch(/`stars` optional.*a migration in .*--reset/)
  expect(await list()).toHaveLength(2)
  const served = dev.next('served')
  dev.write('schema.ts', notesSchema('stars: v.optional(v.int64())'))
  expect((await served).changes.tables.changed).toEqual([{ name: 'notes', parts: ['stars'] }])
})

test('calls, console output and mapped errors are reported', async () => {
  await dev.start()
  const [log, failed] = [dev.next('log'), dev.next('failed')]
  const call = dev.next('call', (each) => each.function === 'notes.fail')
  await dev.call('notes.fail')
  expect(await log).toMatchObject({ function: 'notes.fail', message: 'before', data: 1 })
  expect(await call).toMatchObject({ kind: 'query', outcome: 'FUNCTION_FAILED' })
  const { message, trace, codeFrame } = await failed
  expect(message).toBe('Error: broken on purpose')
  expect(trace[0]).toContain('functions/notes.ts:')
  expect(codeFrame.join('\n')).toMatch(/^> *\d+ \| +throw new Error\('broken on purpose'\)$/m)
  const rejected = dev.next('call', (each) => each.outcome === 'FUNCTION_NOT_FOUND')
  await dev.call('notes.missing')
  expect((await rejected).detail).toContain('notes.missing')
})

test('a second start continues with the documents and the key; --reset removes both', async () => {
  const { applicationKey } = await dev.start()
  await add('kept')
  await dev.stop()
  expect((await dev.start()).applicationKey).toBe(applicationKey)
  expect(await list()).toHaveLength(1)
  await dev.stop()
  const again = await dev.start({ reset: true })
  expect(again.applicationKey).toBe(applicationKey)
  expect(await list()).toEqual([])
})

test('a seed is applied only to an Environment without documents', async () => {
  const seed = JSON.stringify([
    { function: 'notes.seed', arguments: { text: 'a' } },
    { function: 'notes.add', arguments: { text: 'b' } },
  ])
  await dev.start({ seed })
  expect(await list()).toHaveLength(2)
  await dev.stop()
  await dev.start({ seed })
  expect(dev.events.at(-2)).toMatchObject({ message: expect.stringContaining('not applied') })
  expect(await list()).toHaveLength(2)
  await dev.stop()
  const wrong = JSON.stringify([{ function: 'notes.add', arguments: { texts: 'b' } }])
  await expect(dev.start({ seed: wrong, reset: true })).rejects.toMatchObject({
    code: 'SEED_FAILED',
    detail: expect.stringContaining('Call 1, notes.add'),
  })
})

test('a second start on a root fails with the process that has it', async () => {
  const { url } = await dev.start()
  const other = new LocalDevelopment()
  rmSync(other.root, { recursive: true })
  Object.assign(other, { root: dev.root })
  for (const reset of [false, true]) {
    await expect(other.start({ reset })).rejects.toMatchObject({
      code: 'SERVER_PRODUCT_ROOT_LOCKED',
      detail: `It is svc dev at ${url}, process ${process.pid}.`,
    })
  }
  rmSync(other.workspace, { recursive: true })
  expect(await dev.version()).toBe('1')
})

test('a start on a port in use fails with its number', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => taken.once('listening', resolve))
  const { port } = taken.address() as { port: number }
  await expect(dev.start({ port })).rejects.toMatchObject({
    code: 'SERVER_LISTEN_FAILED',
    detail: expect.stringContaining(String(port)),
  })
  taken.close()
})

test('the next call reads a saved file of variables and secrets', async () => {
  await dev.start()
  const missing = dev.next('configuration')
  dev.write(
    'functions/pay.ts',
    `import { action, v } from 'svc'
    export const charge = action({
      clients: ['public'], returns: v.string(), uses: { secrets: ['PAY_KEY'] },
      handler: async ({ config }) =>
        \`\${await config.variable('CURRENCY')} \${await config.secret('PAY_KEY')}\`,
    })`,
  )
  expect((await missing).warnings).toEqual([expect.stringContaining('pay.charge declares it')])
  const charge = async () => (await dev.call('pay.charge', {}, { kind: 'action' })).result?.value
  const set = dev.next('configuration')
  dev.write('.env.local', 'PAY_KEY=sesame\nCURRENCY=EUR\n')
  expect(await set).toMatchObject({ removed: [], warnings: [] })
  expect(await charge()).toBe('EUR sesame')
  // The configuration follows its file also while the source is invalid.
  const rejected = dev.next('rejected')
  dev.write('functions/notes.ts', 'export const = 1')
  await rejected
  const changed = dev.next('configuration')
  dev.write('.env.local', 'PAY_KEY=sesame-2\nCURRENCY=EUR\n')
  expect((await changed).set).toEqual([{ name: 'PAY_KEY', kind: 'secret' }])
  expect(await charge()).toBe('EUR sesame-2')
  await dev.stop()
  dev.write('.env.local', 'PAY_KEY=sesame-3\nCURRENCY=EUR\n')
  await dev.start()
  expect(await charge()).toBe('EUR sesame-3')
  expect(JSON.stringify(dev.events)).not.toContain('sesame')
})

test('a Workspace that is removed and comes back is served again', async () => {
  await dev.start()
  const missing = dev.next('notice', ({ message }) => message.includes('was removed'))
  rmSync(dev.workspace, { recursive: true })
  await missing
  expect(await dev.version()).toBe('1')
  const served = dev.next('served')
  dev.write('schema.ts', notesSchema())
  dev.write('functions/notes.ts', notesFunctions(5))
  await served
  expect(await dev.version()).toBe('5')
})

test('a save whose files cannot be written is reported once and retried', async () => {
  await dev.start()
  const generated = join(dev.workspace, '_generated')
  rmSync(generated, { recursive: true })
  writeFileSync(generated, 'in the way')
  const rejected = dev.next('rejected')
  dev.write('functions/notes.ts', notesFunctions(2))
  expect((await rejected).code).toBe('CLIENT_FILE_FAILED')
  expect(await dev.version()).toBe('1')
  const from = dev.events.length
  rmSync(generated)
  await dev.next('served', () => true, from)
  expect(await dev.version()).toBe('2')
  expect(dev.events.filter(({ event }) => event === 'rejected')).toHaveLength(1)
})

test('svc dev leaves no process and no file but the root when it stops', async () => {
  const children = listNewChildren()
  await dev.start()
  await dev.stop()
  // The kernel removes a killed process asynchronously.
  await expect.poll(children).toEqual([])
  expect(existsSync(join(dev.root, 'dev.json'))).toBe(false)
})
