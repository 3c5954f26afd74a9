/**
 * Goal: `svc dev hook` sends what the service would send, and says what became of it.
 * Method: `svc dev` and the client in this process, with a hook for each scheme.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestClient } from '../../../testing/client/test-client.ts'
import { LocalDevelopment } from '../../../testing/development/local-development.ts'
import { failureOf, signSample } from './hook-samples.ts'

const FUNCTIONS = `
import { internalMutation, query, v } from 'svc'
export const onEvent = internalMutation({
  arguments: { delivery: v.httpDelivery() },
  handler: async (ctx, { delivery }) => {
    const { method, path, headers, query, body } = delivery
    if (delivery.json === 'fail') throw new RangeError('broken on purpose')
    const shown = { method, path, headers, query, bytes: body.length }
    await ctx.db.insert('notes', { text: JSON.stringify(shown) })
  },
})
export const texts = query({
  clients: ['public'], returns: v.array(v.string()),
  handler: async (ctx) => (await ctx.db.table('notes').scan().collect()).map(({ text }) => text),
})
`
const SCHEMES: Record<string, string> = {
  standard: `signature.standardWebhooks({ secret: 'STANDARD' })`,
  stripe: `signature.stripe({ secret: 'TEXT' })`,
  slack: `signature.slack({ secret: 'TEXT' })`,
  github: `signature.github({ secret: 'TEXT' })`,
  twilio: `signature.twilio({ secret: 'TEXT' })`,
  hmac: `signature.hmac({ secret: 'TEXT', header: 'x-sig', algorithm: 'sha256',
    encoding: 'base64', timestampHeader: 'x-time' })`,
  open: `'none'`,
}
const hookText = (name: string, verify: string) =>
  `  ${name}: hook({ path: '/${name}', verify: ${verify}, handler: internal.events.onEvent }),`
const HTTP = `
import { hook, httpRoutes, signature } from 'svc'
import { internal } from './_generated/api'
export default httpRoutes({
${Object.entries(SCHEMES)
  .map(([name, verify]) => hookText(name, verify))
  .join('\n')}
  unset: hook({
    path: '/unset/:id', verify: signature.github({ secret: 'UNSET' }),
    handler: internal.events.onEvent,
  }),
  item: hook({ path: '/items/:id', verify: 'none', handler: internal.events.onEvent }),
  answered: hook({
    path: '/answered', verify: 'none', reply: 'result', handler: internal.events.onEvent,
  }),
  got: hook({ path: '/got', methods: ['GET'], verify: 'none', handler: internal.events.onEvent }),
  token: hook({
    path: '/token', verify: signature.jwt({ issuer: 'https://issuer.example' }),
    handler: internal.events.onEvent,
  }),
})
`

let dev: LocalDevelopment
const client = new TestClient()
beforeAll(async () => {
  dev = new LocalDevelopment()
  dev.write('functions/events.ts', FUNCTIONS)
  dev.write('http.ts', HTTP)
  dev.write('.env.local', 'TEXT=a text\nSTANDARD=whsec_c2VjcmV0\n')
  await dev.start()
  client.tools = {
    signSample: async (sample) => signSample(sample),
    failureOf: async (record, directory) => failureOf(record, directory),
  }
})
afterAll(async () => {
  await dev.dispose()
  client[Symbol.dispose]()
})

function file(name: string, text: string): string {
  const path = join(client.home, name)
  writeFileSync(path, text)
  return path
}

const send = (hook: string, ...more: string[]) =>
  client.run('dev', 'hook', hook, '--root', dev.root, ...more)

async function sent(hook: string, ...more: string[]) {
  const { exit, out, err } = await send(hook, ...more, '--json')
  expect({ exit, err }).toEqual({ exit: 0, err: '' })
  return JSON.parse(out)
}

/** Returns the message of a command that fails. */
async function failed(hook: string, ...more: string[]): Promise<string> {
  const { exit, err } = await send(hook, ...more)
  expect(exit).not.toBe(0)
  return err
}

const stored = async () => JSON.stringify(await dev.call('events.texts'))

test.each(Object.keys(SCHEMES))(
  'a sample for %s is accepted and handled',
  { tags: ['slow'] },
  async (name) => {
    const event = file('event.json', `{"event":"${name}"}`)
    expect(await sent(name, '--file', event)).toEqual({
      version: 1,
      hook: name,
      status: 202,
      deliveryId: expect.stringMatching(/^sch_/),
      isRepeat: false,
      function: 'events.onEvent',
      outcome: 'ok',
      durationMillis: expect.any(Number),
    })
    expect(await stored()).toContain(`/${name}`)
  },
)

test('an event that was sent before is answered, and not handled again', {
  tags: ['slow'],
}, async () => {
  const event = file('event.json', '{"event":"twice"}')
  const { deliveryId } = await sent('stripe', '--file', event)
  const again = await sent('stripe', '--file', event)
  expect(again).toMatchObject({ deliveryId, isRepeat: true, outcome: 'ok' })
  const { out } = await send('stripe', '--file', event)
  expect(out).toContain(`202 Accepted  ${deliveryId}  The event was sent before`)
})

test('headers, the path and the query are those that are given', async () => {
  const event = file('event.json', '{}')
  const headers = ['--header', 'x-github-event:push', '--header', 'X-GitHub-Delivery: 7']
  await sent('github', '--file', event, ...headers)
  expect(await stored()).toContain('x-github-delivery\\":\\"7\\",\\"x-github-event\\":\\"push')
  await sent('item', '--file', event, '--path', '/items/a%20b?page=2')
  expect(await stored()).toContain('/items/a%20b\\",\\"headers')
  expect(await stored()).toContain('{\\"page\\":\\"2\\"}')
  expect(await sent('got')).toMatchObject({ status: 202, outcome: 'ok' })
})

test('a body of another type is sent as it is', async () => {
  const form = file('form.txt', 'From=1&Body=hi')
  const type = ['--header', 'content-type:application/x-www-form-urlencoded']
  expect(await sent('twilio', '--file', form, ...type)).toMatchObject({ status: 202 })
  expect(await stored()).toContain('x-www-form-urlencoded')
})

test('a handler that fails is shown with its lines of source', async () => {
  const event = file('event.json', '"fail"')
  const commands: string[] = []
  for (const isRepeat of [false, true]) {
    const err = await failed('stripe', '--file', event)
    expect(err).toContain('FUNCTION_FAILED')
    expect(err).toMatch(/202 Accepted {2}sch_/)
    expect(err).toContain('RangeError: broken on purpose')
    expect(err).toMatch(/functions\/events\.ts:7:/)
    expect(err).toMatch(/> 7 \|/)
    const [, replay = ''] = /Then run `svc (http replay dev sch_\w+ --root .+)`:/.exec(err)!
    commands.push(replay)
    expect(err.includes('was sent before')).toBe(isRepeat)
  }
  expect(commands[1]).toBe(commands[0])
  // The code fails again.
  const { exit, out } = await client.run(...commands[0]!.split(' '))
  expect([exit, out]).toEqual([0, expect.stringContaining('runs again under rel_')])
})

test('a failure of a hook that is answered with its result names the delivery', async () => {
  const err = await failed('answered', '--file', file('event.json', '"fail"'))
  expect(err).toContain('FUNCTION_FAILED')
  const [, list = ''] = /`svc (http deliveries dev --state failed --root .+)`/.exec(err)!
  const { exit, out } = await client.run(...list.split(' '))
  expect([exit, out]).toEqual([0, expect.stringMatching(/^sch_.* answered .* failed /m)])
})

test('a signature that is given is sent, and its rejection names the record', async () => {
  const event = file('event.json', '{}')
  const err = await failed('github', '--file', event, '--header', 'x-hub-signature-256:sha256=0')
  expect(err).toContain('SIGNATURE_INVALID')
  expect(err).toMatch(new RegExp(`svc logs --root ${dev.root} --request req_`))
})

test('a token is that of the variable', async () => {
  const event = file('event.json', '{}')
  expect(await failed('token', '--file', event)).toContain('Give --token-env VAR')
  client.variables.TOKEN = 'a.b.c'
  const err = await failed('token', '--file', event, '--token-env', 'TOKEN')
  expect(err).toContain('SIGNATURE_INVALID')
  const other = await failed('stripe', '--file', event, '--token-env', 'TOKEN')
  expect(other).toContain('The hook stripe verifies stripe, not a token.')
})

test('mistakes are explained', async () => {
  const event = file('event.json', '{}')
  const at = ['--file', event]
  expect(await failed('strip', ...at)).toMatch(
    /http\.ts has no hook strip\. It has answered, github, got, .*stripe, token, twilio, unset\./,
  )
  expect(await failed('stripe')).toContain('Give its body with --file FILE: the hook stripe takes')
  expect(await failed('got', ...at)).toContain('A GET has no --file: the hook got takes GET.')
  expect(await failed('stripe', ...at, '--provider', 'github')).toContain(
    'The hook stripe verifies stripe, not github.',
  )
  expect(await sent('stripe', ...at, '--provider', 'stripe')).toMatchObject({ status: 202 })
  expect(await failed('item', ...at)).toContain('Give --path PATH: the hook item is at /items/:id')
  expect(await failed('item', ...at, '--path', '/other')).toContain('--path is not one of')
  expect(await failed('stripe', ...at, '--header', 'event')).toContain('--header needs NAME:VALUE')
  const missing = join(client.home, 'none.json')
  expect(await failed('stripe', '--file', missing)).toContain(`There is no ${missing}.`)
  const broken = await failed('stripe', '--file', file('broken.json', '{"a": 1,}'))
  expect(broken).toMatch(/broken\.json is not JSON: expected .* at character \d+\./)
  expect(broken).toContain('--header content-type:TYPE')
  const unset = await failed('unset', ...at, '--path', '/unset/1')
  expect(unset).toMatch(/\.env\.local of .* has no UNSET, with which the hook verifies/)
  expect(unset).toContain('Write a line UNSET=SECRET into it.')
})

test('the command says how to start svc dev where none runs', async () => {
  const event = file('event.json', '{}')
  const { exit, err } = await client.run('dev', 'hook', 'stripe', '--file', event)
  expect(exit).not.toBe(0)
  expect(err).toContain(`No svc dev serves ${client.home} or a directory above it.`)
  expect(err).toContain('Start `svc dev --root DIR`')
})
