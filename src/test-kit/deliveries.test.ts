/** Deliveries of `svc/test`: events of other services, with a hook for each scheme. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { NOTES_FILES } from '../../testing/test-kit/notes-workspace.ts'
import { type KitWorkspace, kitWorkspace } from '../../testing/test-kit/workspaces.ts'
import { testEnvironment } from './test-kit.ts'

let workspace: KitWorkspace
beforeAll(() => {
  workspace = kitWorkspace('empty', NOTES_FILES)
  process.env.SVC_EXECUTABLE = workspace.executable
})
afterAll(() => workspace.remove())

const open = (options: Parameters<typeof testEnvironment>[0] = {}) =>
  testEnvironment({ workspace: workspace.directory, ...options })
const code = (expected: string, message = '') =>
  expect.objectContaining({
    name: 'CallError',
    code: expected,
    message: expect.stringContaining(message),
  })

test('an event is handled once, when the time is advanced', { tags: ['slow'] }, async () => {
  await using backend = await open()
  const event = { body: { id: 'evt_1', text: 'first' } }
  const delivered = await backend.deliver('stripe', event)
  expect(delivered).toEqual({ deliveryId: expect.stringMatching(/^sch_/), replayed: false })
  expect(await backend.query('notes.list')).toEqual([])
  await backend.advance()
  expect(await backend.query('notes.list')).toEqual(['first'])
  const again = await backend.deliver('stripe', { body: { id: 'evt_1', text: 'second' } })
  expect(again).toEqual({ ...delivered, replayed: true })
  await backend.advance({ hours: 1 }, { crons: false })
  expect(await backend.query('notes.list')).toEqual(['first'])
  const { deliveryId: id } = delivered
  const work = { id, function: 'events.onEvent', state: 'succeeded', hook: 'stripe' }
  expect(await backend.scheduled()).toEqual([expect.objectContaining({ ...work, cron: null })])
})

const HEADERS: Record<string, string[]> = {
  mail: ['webhook-id', 'webhook-timestamp'],
  code: ['x-github-delivery'],
  sms: ['i-twilio-idempotency-token'],
  chat: ['x-slack-request-timestamp'],
  own: [],
  token: [],
  open: [],
}

test.each(Object.entries(HEADERS))(
  'the handler of %s gets the headers of its service',
  { tags: ['slow'] },
  async (hook, names) => {
    await using backend = await open()
    const path = hook === 'code' ? '/code/a?b=c' : undefined
    await backend.deliver(hook, { body: { a: 1 }, ...(path !== undefined && { path }) })
    await backend.advance()
    const [text] = (await backend.query('notes.list')) as string[]
    const shown = JSON.parse(text!)
    expect(Object.keys(shown.headers)).toEqual(['content-type', ...names])
    expect(shown).toMatchObject({ method: 'POST', bytes: 7 })
    expect(shown.path).toBe(hook === 'open' ? '/' : hook === 'code' ? '/code/a' : `/${hook}`)
  },
)

test('headers and bytes are sent as the test gives them', { tags: ['slow'] }, async () => {
  await using backend = await open()
  const headers = { 'X-GitHub-Delivery': '7', 'x-more': 'yes', 'x-other': 'no' }
  await backend.deliver('code', { headers, body: new Uint8Array(3), path: '/code/a?b=c' })
  await backend.advance()
  const [text] = (await backend.query('notes.list')) as string[]
  expect(JSON.parse(text!)).toMatchObject({
    headers: {
      'content-type': 'application/octet-stream',
      'x-github-delivery': '7',
      'x-more': 'yes',
    },
    query: { b: 'c' },
    bytes: 3,
  })
})

test('an event that a server would not accept is rejected, and nothing is stored', async () => {
  await using backend = await open({ secrets: { STRIPE: 'one' } })
  const deliver = backend.deliver.bind(backend)
  const body = { id: 'evt_1', text: 'x' }
  await expect(deliver('strip', { body })).rejects.toEqual(
    code('REQUEST_INVALID', 'http.ts has no hook strip. It has chat, code, mail'),
  )
  await expect(deliver('code', { body })).rejects.toEqual(code('REQUEST_INVALID', '/code/:name'))
  await expect(deliver('code', { body, path: '/other' })).rejects.toEqual(code('REQUEST_INVALID'))
  const headers = { 'stripe-signature': 't=1767225600,v1=00' }
  await expect(deliver('stripe', { body, headers })).rejects.toEqual(
    code('SIGNATURE_INVALID', 'the signature does not match'),
  )
  const large = { ...body, text: 'x'.repeat(1_000) }
  await expect(deliver('stripe', { body: large })).rejects.toEqual(code('LIMIT_EXCEEDED', '1000'))
  await expect(deliver('stripe', { body: { text: 'no ID' } })).rejects.toEqual(
    code('FUNCTION_FAILED', 'once of stripe did not return'),
  )
  const error = await deliver('stripe', { body: 'not JSON' }).catch((reason) => reason)
  expect(error.cause.stack).toContain('http.ts:')
  expect(error.stack).toContain('deliveries.test.ts')
  expect(await backend.scheduled()).toEqual([])
})

test('a secret of Standard Webhooks that signs nothing is named', async () => {
  await using backend = await open({ secrets: { MAIL: '!!' } })
  await expect(backend.deliver('mail', { body: {} })).rejects.toEqual(
    code('UNAVAILABLE', 'a secret of Standard Webhooks is whsec_ and base64'),
  )
})

test('the failure of a handler is logged, and its work has failed', async () => {
  const lines: { function: string; message: string }[] = []
  await using backend = await open({ log: (line) => lines.push(line) })
  await backend.deliver('stripe', { body: { id: 'evt_1', text: '' } })
  await backend.advance()
  expect(await backend.scheduled()).toMatchObject([
    { hook: 'stripe', state: 'failed', lastErrorCode: 'FUNCTION_FAILED' },
  ])
  expect(lines[0]!.message).toContain('RangeError: an empty note')
})

test('equal seeds give equal deliveries', { tags: ['slow'] }, async () => {
  const observe = async (seed: number) => {
    await using backend = await open({ seed })
    await backend.deliver('mail', { body: { a: 1 } })
    await backend.advance()
    return JSON.stringify([await backend.query('notes.list'), backend.now.toString()])
  }
  const [one, again, other] = [await observe(7), await observe(7), await observe(8)]
  expect(again).toBe(one)
  expect(other).not.toBe(one)
})
