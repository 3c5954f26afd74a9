import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { FakePlatform, IDS, runReactions } from '../../../testing/app-client/fake-platform.ts'
import { encodeTagged } from '../../value/tagged.ts'
import { TypedId, type Value } from '../../value/values.ts'
import { Client } from '../client.ts'
import type { Query } from '../references.ts'
import { reuse } from './lists.ts'

interface Note {
  readonly _id: string
  readonly body: string
}

const list = { kind: 'query', name: 'm.list', arguments: {} } as Query<
  Record<string, never>,
  Note[],
  never
>
const page = { kind: 'query', name: 'm.page', arguments: {} } as Query<
  Record<string, never>,
  { cursor: string | null; items: Note[] },
  never
>

const idOf = (name: string) => `notes_0${name.repeat(25)}`
const note = (name: string, body = name): Value =>
  new Map<string, Value>([
    ['_id', new TypedId(idOf(name))],
    ['body', body],
  ])
const notes = (names: string) => [...names].map((name) => note(name))
const tagged = (value: Value) => JSON.parse(encodeTagged(value))
const bodies = (values: readonly Note[]) => values.map(({ body }) => body).join('')
const NO_CHANGES = { path: [], remove: [], update: [], move: [], insert: [] }

/** Watches a Query on a connection of the protocol. */
async function watched<R>(reference: Query<Record<string, never>, R, never>, protocol?: string) {
  const platform = new FakePlatform()
  if (protocol !== undefined) platform.protocol = protocol
  const client = new Client({ url: 'http://a.test', applicationKey: 'k', target: 't' }, platform)
  onTestFinished(() => client.close())
  const onValue = vi.fn<(value: R) => void>()
  client.watch(reference, {}, onValue)
  await runReactions()
  platform.socket.accept()
  const subscription = () => platform.socket.ofType('subscribe').at(-1)
  const receive = (message: object) =>
    platform.socket.receive({
      subscriptionId: subscription().subscriptionId,
      snapshotSequence: '1',
      releaseId: IDS.release,
      ...message,
    })
  const state = (revision: string, result: Value) =>
    receive({ type: 'state', revision, result: tagged(result) })
  const patch = (base: number, changes: object) =>
    receive({
      type: 'patch',
      base: String(base),
      revision: String(base + 1),
      ...NO_CHANGES,
      ...changes,
    })
  const last = () => onValue.mock.lastCall![0]
  return { platform, client, onValue, subscription, state, patch, last }
}

describe('a watched list', () => {
  test('changes by patches, while all other entries stay the same objects', async () => {
    const { platform, subscription, state, patch, last } = await watched(list)
    expect(platform.offers).toEqual([['service.realtime.v2', 'service.realtime.v1']])
    expect(subscription()).toMatchObject({ version: 2, patches: true })
    state('1', notes('ABCDE'))
    const before = last()
    patch(1, {
      remove: [idOf('B')],
      update: [{ id: idOf('C'), value: tagged(note('C', 'c')) }],
      move: [{ id: idOf('E'), to: 0 }],
      insert: [
        { at: 1, value: tagged(note('F')) },
        { at: 5, value: tagged(note('G')) },
      ],
    })
    expect(bodies(last())).toBe('EFAcDG')
    expect(bodies(before)).toBe('ABCDE')
    expect([last()[0], last()[2], last()[4]]).toEqual([before[4], before[0], before[3]])
    expect(last()[0]).toBe(before[4])
    expect(last()[4]).toBe(before[3])
  })

  test('changes in a page, whose other fields stay', async () => {
    const { state, patch, last } = await watched(page)
    const value = (names: string) =>
      new Map<string, Value>([
        ['cursor', 'c'],
        ['items', notes(names)],
      ])
    state('1', value('AB'))
    const [first] = last().items
    patch(1, { path: ['items'], insert: [{ at: 2, value: tagged(note('C')) }] })
    expect(last()).toMatchObject({ cursor: 'c' })
    expect(bodies(last().items)).toBe('ABC')
    expect(last().items[0]).toBe(first)
  })

  test('stays correct although the application sorts what it gets', async () => {
    const { state, patch, last } = await watched(list)
    state('1', notes('ABC'))
    last().reverse()
    patch(1, { insert: [{ at: 3, value: tagged(note('D')) }] })
    expect(bodies(last())).toBe('ABCD')
    last().length = 0
    state('3', notes('ABCD'))
    patch(3, { remove: [idOf('A')] })
    expect(bodies(last())).toBe('BCD')
  })

  test('keeps equal entries between whole states, and is reported only if it changes', async () => {
    const { state, last, onValue } = await watched(list)
    state('1', notes('ABC'))
    const before = last()
    state('2', notes('ABC'))
    expect(onValue).toHaveBeenCalledTimes(1)
    state('3', [note('C'), note('A', 'a')])
    expect(bodies(last())).toBe('Ca')
    expect(last()[0]).toBe(before[2])
  })
})

describe('a server that selects version 1', () => {
  test('gets no subscription with patches', async () => {
    const { subscription, state, last } = await watched(list, 'service.realtime.v1')
    expect(subscription()).toMatchObject({ version: 1 })
    expect(subscription()).not.toHaveProperty('patches')
    state('1', notes('A'))
    expect(bodies(last())).toBe('A')
  })

  test('gets messages of version 1, also if it names none', async () => {
    const { subscription } = await watched(list, '')
    expect(subscription()).toMatchObject({ version: 1 })
  })
})

test('a socket that does not name the selected version is opened again for version 1', async () => {
  const platform = new FakePlatform()
  platform.protocol = undefined
  const client = new Client({ url: 'http://a.test', applicationKey: 'k', target: 't' }, platform)
  onTestFinished(() => client.close())
  client.watch(list, {}, () => undefined)
  await runReactions()
  platform.socket.onopen?.()
  await runReactions()
  expect(platform.offers).toEqual([
    ['service.realtime.v2', 'service.realtime.v1'],
    ['service.realtime.v1'],
  ])
  platform.socket.accept()
  expect(platform.socket.ofType('authenticate')).toEqual([
    { version: 1, type: 'authenticate', applicationKey: 'k' },
  ])
})

describe('a patch that does not fit', () => {
  const entry = { value: tagged(note('X')) }
  test.each<[string, object]>([
    ['another base', { base: '7', revision: '8' }],
    ['a revision that is not the next one', { revision: '3' }],
    ['a base that is no revision', { base: 1 }],
    ['another path', { path: ['items'] }],
    ['no path', { path: undefined }],
    ['the removal of an unknown entry', { remove: [idOf('Z')] }],
    ['an update of an unknown entry', { update: [{ id: idOf('Z'), ...entry }] }],
    [
      'an update to a value without an ID',
      { update: [{ id: idOf('A'), value: { type: 'null' } }] },
    ],
    [
      'an update to the ID of another one',
      { update: [{ id: idOf('A'), value: tagged(note('B')) }] },
    ],
    ['an update that is not canonical', { update: [{ id: idOf('A'), value: { type: 'x' } }] }],
    ['a move of an unknown entry', { move: [{ id: idOf('Z'), to: 0 }] }],
    ['a move behind the end', { move: [{ id: idOf('A'), to: 3 }] }],
    ['a move to no place', { move: [{ id: idOf('A'), to: '0' }] }],
    ['an insertion behind the end', { insert: [{ at: 4, ...entry }] }],
    ['an insertion before the start', { insert: [{ at: -1, ...entry }] }],
    ['an insertion at a fraction', { insert: [{ at: 0.5, ...entry }] }],
    ['an insertion of a known ID', { insert: [{ at: 0, value: tagged(note('A')) }] }],
    ['no list of moves', { move: null }],
  ])('makes the client ask for a whole state: %s', async (_, changes) => {
    const { platform, client, subscription, state, patch, onValue, last } = await watched(list)
    state('1', notes('ABC'))
    const first = subscription()
    patch(1, changes)
    expect(platform.socket.ofType('unsubscribe')).toMatchObject([
      { subscriptionId: first.subscriptionId },
    ])
    expect(subscription().subscriptionId).not.toBe(first.subscriptionId)
    expect(subscription()).not.toHaveProperty('patches')
    // The application sees nothing of it.
    expect(onValue).toHaveBeenCalledTimes(1)
    expect(client.connection.current().status).toBe('connected')
    state('1', notes('AB'))
    expect(bodies(last())).toBe('AB')
    expect(platform.sockets).toHaveLength(1)
  })

  test('needs a state that is a list', async () => {
    const { subscription, patch, state, onValue } = await watched(list)
    patch(0, {})
    expect(subscription()).not.toHaveProperty('patches')
    state('1', 'text')
    patch(1, {})
    state('1', notes('A'))
    expect(onValue).toHaveBeenCalledTimes(2)
  })
})

test('a reused value has the parts of the one before that are equal, whatever their type', () => {
  const before = { a: [1, { b: new Uint8Array([1]) }], c: null, d: 5n, e: { f: 'x' } }
  const copy = () => ({ a: [1, { b: new Uint8Array([1]) }], c: null, d: 5n, e: { f: 'x' } })
  expect(reuse(before, copy())).toBe(before)
  const changed = reuse(before, { ...copy(), e: { f: 'y' } }) as typeof before
  expect(changed).toEqual({ ...before, e: { f: 'y' } })
  expect(changed.a).toBe(before.a)
  for (const other of [null, [], new Uint8Array([1]), { a: 1 }, 'x', { ...copy(), g: 1 }]) {
    const expected = structuredClone(other)
    expect(reuse(before, other)).toEqual(expected)
    expect(reuse(other, before)).toEqual(before)
  }
  const bytes = { b: new Uint8Array([2]) }
  expect(reuse({ b: new Uint8Array([1]) }, bytes)).toBe(bytes)
})
