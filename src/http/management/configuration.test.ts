import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { answer, ProductRoutes, rejection } from '../../../testing/product-routes.ts'
import type { TestProduct } from '../../../testing/products.ts'
import {
  ConfigurationChanged,
  ConfigurationHistory,
  ConfigurationList,
} from '../../wire/configuration.ts'

const SECRET = 'sk_live_51H8xJ2eZvKYlo2C'

let routes: ProductRoutes
let fixture: TestProduct
beforeEach(async () => {
  routes = await ProductRoutes.open()
  fixture = routes.harness
})
afterEach(() => fixture.close())

const micros = () => String(fixture.system.nowMicros())
const newOperation = () => fixture.system.ids.make('opn')

interface Sent {
  readonly name?: string
  readonly operationId?: string | null
  readonly body?: object
  readonly headers?: Record<string, string>
}

function send(method: string, body: object, { name = 'API_KEY', headers, ...sent }: Sent) {
  const operationId = sent.operationId === undefined ? newOperation() : sent.operationId
  const key = operationId === null ? {} : { 'idempotency-key': operationId }
  const all = { ...body, ...sent.body }
  return routes.call(method, `/configuration/${name}`, {
    headers: { ...key, ...headers },
    body: all,
  })
}

function put(sent: Sent = {}) {
  const value = { expectedRevision: 0, kind: 'secret', value: SECRET, changedAtMicros: micros() }
  return send('PUT', value, sent)
}

function remove(sent: Sent = {}) {
  return send('DELETE', { expectedRevision: 1, changedAtMicros: micros() }, sent)
}

const list = () => answer(routes.call('GET', '/configuration'), 200, ConfigurationList)
const history = (query = '') =>
  answer(routes.call('GET', `/configuration/history${query}`), 200, ConfigurationHistory)

test('a new Environment has no configuration', async () => {
  expect(await list()).toEqual({ version: 1, revision: '0', entries: [] })
  expect(await history()).toEqual({ version: 1, entries: [], next: null })
})

test('names are set, listed in order, and deleted, and no response contains a secret', async () => {
  const [operationId, changedAtMicros] = [newOperation(), micros()]
  const sent = { operationId, body: { changedAtMicros } }
  const created = await answer(put(sent), 200, ConfigurationChanged)
  const { operatorId } = created.change
  const change = { revision: '1', name: 'API_KEY', kind: 'secret', action: 'set', operatorId }
  expect(created).toEqual({
    version: 1,
    change: { ...change, changedAtMicros },
    operation: {
      version: 1,
      operationId,
      kind: 'configuration.set',
      outcome: 'applied',
      replayed: false,
      revision: '1',
      createdAtMicros: expect.any(String),
    },
  })
  const variable = { expectedRevision: '1', kind: 'variable', value: 'hello\n' }
  await answer(put({ name: '2ND', body: variable }), 200, ConfigurationChanged)
  const listed = await list()
  expect(listed.revision).toBe('2')
  expect(listed.entries).toEqual([
    { name: '2ND', kind: 'variable', value: 'hello\n', ...entryOf('2', listed) },
    { name: 'API_KEY', kind: 'secret', ...entryOf('1', listed) },
  ])
  await answer(remove({ body: { expectedRevision: 2 } }), 200, ConfigurationChanged)
  expect((await list()).entries.map(({ name }) => name)).toEqual(['2ND'])
  const { entries } = await history()
  expect(entries.map((entry) => `${entry.revision} ${entry.action} ${entry.name}`)).toEqual([
    '3 delete API_KEY',
    '2 set 2ND',
    '1 set API_KEY',
  ])
  expect(JSON.stringify([created, listed, entries])).not.toContain(SECRET)
  expect(fixture.log.text()).not.toContain(SECRET)
})

function entryOf(revision: string, { entries }: ConfigurationList) {
  const { createdAtMicros, updatedAtMicros } = entries.find((one) => one.revision === revision)!
  return { revision, createdAtMicros, updatedAtMicros }
}

test('a new value keeps the creation time', async () => {
  const first = micros()
  await answer(put({ body: { changedAtMicros: first } }), 200, ConfigurationChanged)
  const second = String(BigInt(first) + 5n)
  const body = { expectedRevision: 1, changedAtMicros: second }
  await answer(put({ body }), 200, ConfigurationChanged)
  const times = { createdAtMicros: first, updatedAtMicros: second }
  expect((await list()).entries).toMatchObject([{ revision: '2', ...times }])
})

test('an exact repeat has the original response, and another request is a conflict', async () => {
  const sent = { operationId: newOperation(), body: { changedAtMicros: micros() } }
  const created = await answer(put(sent), 200, ConfigurationChanged)
  const replayed = { ...created, operation: { ...created.operation, replayed: true } }
  expect(await answer(put(sent), 200, ConfigurationChanged)).toEqual(replayed)
  // The notation of a number makes no difference.
  const asText = { ...sent, body: { ...sent.body, expectedRevision: '0' } }
  expect(await answer(put(asText), 200, ConfigurationChanged)).toEqual(replayed)
  const other = { ...sent, body: { ...sent.body, value: 'other' } }
  await rejection(put(other), 409, 'PRODUCT_OPERATION_REUSED')
  await rejection(put({ ...sent, name: 'OTHER' }), 409, 'PRODUCT_OPERATION_REUSED')
  await rejection(remove(sent), 409, 'PRODUCT_OPERATION_REUSED')
  expect((await list()).revision).toBe('1')
})

describe('the bounds of a change', () => {
  test.each<[string, Sent, number, string]>([
    ['no Operation ID', { operationId: null }, 400, 'PLATFORM_REQUEST_INVALID'],
    ['a wrong Operation ID', { operationId: 'opn_1' }, 400, 'PLATFORM_REQUEST_INVALID'],
    ['a lower-case name', { name: 'api_key' }, 400, 'PLATFORM_REQUEST_INVALID'],
    ['a name with an underscore first', { name: '_KEY' }, 400, 'PLATFORM_REQUEST_INVALID'],
    ['an unknown field', { body: { note: 'x' } }, 400, 'PLATFORM_REQUEST_INVALID'],
    ['another kind', { body: { kind: 'password' } }, 400, 'PLATFORM_REQUEST_INVALID'],
    ['a value that is no text', { body: { value: 7 } }, 400, 'PLATFORM_REQUEST_INVALID'],
    ['a time as a number', { body: { changedAtMicros: 7 } }, 400, 'PLATFORM_REQUEST_INVALID'],
    ['a negative revision', { body: { expectedRevision: -1 } }, 400, 'PLATFORM_REQUEST_INVALID'],
    ['half a revision', { body: { expectedRevision: 0.5 } }, 400, 'PLATFORM_REQUEST_INVALID'],
    [
      'an inexact revision',
      { body: { expectedRevision: 2 ** 53 } },
      400,
      'PLATFORM_REQUEST_INVALID',
    ],
    ['a padded revision', { body: { expectedRevision: '00' } }, 400, 'PLATFORM_REQUEST_INVALID'],
    ['a stale revision', { body: { expectedRevision: 5 } }, 409, 'PRODUCT_CAS_CONFLICT'],
    ['an empty secret', { body: { value: '' } }, 400, 'PRODUCT_INVALID'],
    ['a value over 32 KiB', { body: { value: 'x'.repeat(32_769) } }, 400, 'PRODUCT_INVALID'],
    [
      'a value over 72 KiB',
      { body: { value: 'x'.repeat(73_728) } },
      413,
      'PLATFORM_BODY_TOO_LARGE',
    ],
    [
      'another media type',
      { headers: { 'content-type': 'text/plain' } },
      415,
      'PLATFORM_MEDIA_TYPE_UNSUPPORTED',
    ],
  ])('a change is rejected for %s', async (_, sent, status, code) => {
    const error = await rejection(put(sent), status, code)
    expect(JSON.stringify(error)).not.toContain(SECRET)
    expect((await list()).revision).toBe('0')
  })

  test('a value that grows by its JSON escapes is accepted', async () => {
    const body = { value: '"'.repeat(32 * 1024) }
    await answer(put({ body }), 200, ConfigurationChanged)
  })

  test('the deletion of an unknown name', async () => {
    const body = { expectedRevision: 0 }
    await rejection(remove({ body }), 404, 'PRODUCT_NOT_FOUND')
  })

  test('another kind for an existing name', async () => {
    await answer(put(), 200, ConfigurationChanged)
    const body = { expectedRevision: 1, kind: 'variable' }
    const error = await rejection(put({ body }), 409, 'PRODUCT_STATE_CONFLICT')
    expect(error.violations).toMatchObject([{ path: 'kind' }])
  })

  test('an invalid cursor of the history', async () => {
    for (const query of ['?limit=0', '?limit=1001', '?limit=x', '?after=0', '?after=x', '?x=1']) {
      const response = routes.call('GET', `/configuration/history${query}`)
      await rejection(response, 400, 'PLATFORM_REQUEST_INVALID')
    }
  })
})

test('pages of the history follow each other', async () => {
  for (let i = 0; i < 3; i++) {
    await answer(put({ name: `N${i}`, body: { expectedRevision: i } }), 200, ConfigurationChanged)
  }
  const first = await history('?limit=2')
  expect(first.entries.map(({ name }) => name)).toEqual(['N2', 'N1'])
  const second = await history(`?limit=2&after=${first.next}`)
  expect([second.entries.map(({ name }) => name), second.next]).toEqual([['N0'], null])
})
