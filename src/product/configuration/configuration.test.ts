import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  actorWith,
  openTestProduct,
  REQUEST_ID,
  type TestProduct,
} from '../../../testing/products.ts'
import {
  type AppliedChange,
  type DeleteInput,
  deleteConfiguration,
  NAMES_MAX,
  readConfiguration,
  readConfigurationHistory,
  type SetInput,
  setConfiguration,
} from './configuration.ts'

const NOW = 1_800_000_000_000_000n
const DAY = 86_400_000_000n
const SECRET = 'sk_live_51H8xJ2eZvKYlo2C'

let harness: TestProduct
beforeEach(async () => {
  harness = await openTestProduct()
})
afterEach(() => harness.close())

function input(more: Partial<SetInput> = {}): SetInput {
  return {
    operationId: harness.system.ids.make('opn'),
    name: 'GREETING',
    kind: 'variable',
    value: 'hello',
    expectedRevision: readConfiguration(harness.product).revision,
    changedAtMicros: NOW,
    requestId: REQUEST_ID,
    ...more,
  }
}

function set(more: Partial<SetInput> = {}): AppliedChange {
  return setConfiguration(harness.product, harness.actor, input(more))
}

function unset(more: Partial<DeleteInput> = {}): AppliedChange {
  const { kind, value, ...rest } = input(more)
  return deleteConfiguration(harness.product, harness.actor, rest)
}

function codeOf(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    return (error as { code?: string }).code ?? String(error)
  }
  return 'none'
}

const revision = () => readConfiguration(harness.product).revision
const names = () => readConfiguration(harness.product).entries.map(({ name }) => name)
const live = () => harness.product.configuration.current

describe('the states of a name', () => {
  const before = {
    absent: () => undefined,
    variable: () => set(),
    secret: () => set({ kind: 'secret', value: SECRET }),
    deleted: () => {
      set()
      unset()
    },
  }
  const actions = {
    'set as a variable': () => set({ value: 'second' }),
    'set as a secret': () => set({ kind: 'secret', value: 'second' }),
    deleted: () => unset(),
    'set at a stale revision': () => set({ expectedRevision: 99n }),
    'deleted at a stale revision': () => unset({ expectedRevision: 99n }),
  }
  type Action = keyof typeof actions

  test.each<[keyof typeof before, Action, string, [string | null, string | null]]>([
    ['absent', 'set as a variable', 'none', ['second', null]],
    ['absent', 'set as a secret', 'none', [null, 'second']],
    ['absent', 'deleted', 'PRODUCT_NOT_FOUND', [null, null]],
    ['absent', 'set at a stale revision', 'PRODUCT_CAS_CONFLICT', [null, null]],
    ['absent', 'deleted at a stale revision', 'PRODUCT_CAS_CONFLICT', [null, null]],
    ['variable', 'set as a variable', 'none', ['second', null]],
    ['variable', 'set as a secret', 'PRODUCT_STATE_CONFLICT', ['hello', null]],
    ['variable', 'deleted', 'none', [null, null]],
    ['variable', 'set at a stale revision', 'PRODUCT_CAS_CONFLICT', ['hello', null]],
    ['variable', 'deleted at a stale revision', 'PRODUCT_CAS_CONFLICT', ['hello', null]],
    ['secret', 'set as a variable', 'PRODUCT_STATE_CONFLICT', [null, SECRET]],
    ['secret', 'set as a secret', 'none', [null, 'second']],
    ['secret', 'deleted', 'none', [null, null]],
    ['secret', 'set at a stale revision', 'PRODUCT_CAS_CONFLICT', [null, SECRET]],
    ['secret', 'deleted at a stale revision', 'PRODUCT_CAS_CONFLICT', [null, SECRET]],
    ['deleted', 'set as a variable', 'none', ['second', null]],
    ['deleted', 'set as a secret', 'none', [null, 'second']],
    ['deleted', 'deleted', 'PRODUCT_NOT_FOUND', [null, null]],
  ])(
    'a name that is %s and then %s ends with code %s',
    (state, action, code, [variable, secret]) => {
      before[state]()
      const earlier = revision()
      expect(codeOf(actions[action])).toBe(code)
      expect(live().variable('GREETING')).toBe(variable)
      expect(live().secret('GREETING')?.reveal() ?? null).toBe(secret)
      expect(revision()).toBe(code === 'none' ? earlier + 1n : earlier)
    },
  )
})

describe('a request', () => {
  test.each<[string, Partial<SetInput>]>([
    ['a lower-case name', { name: 'greeting' }],
    ['a name that begins with an underscore', { name: '_A' }],
    ['an empty name', { name: '' }],
    ['a name of 65 bytes', { name: 'A'.repeat(65) }],
    ['a name with a line feed', { name: 'A\n' }],
    ['a value of 32 KiB and a byte', { value: 'x'.repeat(32 * 1024 + 1) }],
    ['a value of too many bytes in few characters', { value: '€'.repeat(11_000) }],
    ['a lone surrogate', { value: '\ud800' }],
    ['an empty secret', { kind: 'secret', value: '' }],
    ['a time too long ago', { changedAtMicros: NOW - DAY - 1n }],
    ['a time too far ahead', { changedAtMicros: NOW + DAY + 1n }],
  ])('a request with %s is rejected', (_, more) => {
    expect(codeOf(() => set(more))).toBe('PRODUCT_INVALID')
    expect(revision()).toBe(0n)
  })

  test.each<[string, Partial<SetInput>]>([
    ['a name of 64 bytes', { name: 'A'.repeat(64) }],
    ['a name that begins with a digit', { name: '2FA_KEY' }],
    ['a value of 32 KiB', { value: 'x'.repeat(32 * 1024) }],
    ['a secret of 32 KiB', { kind: 'secret', value: 'x'.repeat(32 * 1024) }],
    ['an empty variable', { value: '' }],
    ['control characters', { value: '\0\n' }],
  ])('a request with %s is stored unchanged', (_, more) => {
    const { name, kind, value } = input(more)
    set(more)
    const found = kind === 'variable' ? live().variable(name) : live().secret(name)?.reveal()
    expect(found).toBe(value)
  })

  test('a request for a new name beyond the limit is rejected, for an existing one not', () => {
    harness.root.control.transaction((tx) => {
      for (let i = 1; i <= NAMES_MAX; i++) {
        tx.run(
          "insert into configuration values (?, 'variable', 'x', null, null, 1, 1, 1)",
          `N${i}`,
        )
      }
    })
    expect(codeOf(() => set())).toBe('PRODUCT_STATE_CONFLICT')
    expect(codeOf(() => set({ name: 'N7' }))).toBe('none')
    unset({ name: 'N7' })
    expect(codeOf(() => set())).toBe('none')
  })
})

describe('a change that expects a revision', () => {
  test('a change conflicts once another change of any name followed the expected revision', () => {
    set({ name: 'A' })
    const expectedRevision = revision()
    set({ name: 'B', expectedRevision })
    expect(codeOf(() => set({ name: 'C', expectedRevision }))).toBe('PRODUCT_CAS_CONFLICT')
    expect(codeOf(() => unset({ name: 'A', expectedRevision }))).toBe('PRODUCT_CAS_CONFLICT')
    expect(names()).toEqual(['A', 'B'])
  })

  test('a change conflicts even if a deletion restored the state of the expected revision', () => {
    set()
    unset()
    expect(revision()).toBe(2n)
    expect(codeOf(() => set({ expectedRevision: 0n }))).toBe('PRODUCT_CAS_CONFLICT')
    expect(set().change.revision).toBe(3n)
  })
})

describe('an Operation ID', () => {
  test.each<[string, Partial<SetInput>]>([
    ['a variable', {}],
    ['a secret', { kind: 'secret', value: SECRET }],
  ])('an Operation ID that set %s returns its first result to an exact repeat', (_, more) => {
    const first = input(more)
    const done = setConfiguration(harness.product, harness.actor, first)
    expect(done.operation.replayed).toBe(false)
    set({ name: 'OTHER' })
    set({ value: 'later', ...(more.kind && { kind: more.kind }) })
    const before = live()
    const again = setConfiguration(harness.product, harness.actor, {
      ...first,
      requestId: REQUEST_ID,
    })
    expect(again).toEqual({ ...done, operation: { ...done.operation, replayed: true } })
    expect(revision()).toBe(3n)
    // Nothing changed, so Functions keep their state of the configuration.
    expect(live()).toBe(before)
  })

  test('an Operation ID that deleted a name returns its first result to an exact repeat', () => {
    set()
    const { kind, value, ...first } = input()
    const done = deleteConfiguration(harness.product, harness.actor, first)
    const again = deleteConfiguration(harness.product, harness.actor, first)
    expect(again).toEqual({ ...done, operation: { ...done.operation, replayed: true } })
    expect(done.change).toMatchObject({ action: 'delete', kind: 'variable', revision: 2n })
  })

  test('an exact repeat gets its result long after its clock difference is too large', () => {
    const first = input()
    setConfiguration(harness.product, harness.actor, first)
    harness.system.advance(10 * 86_400_000)
    expect(setConfiguration(harness.product, harness.actor, first).operation.replayed).toBe(true)
  })

  test('a request whose record was deleted is too old to be applied again', () => {
    const first = input()
    setConfiguration(harness.product, harness.actor, first)
    harness.system.advance(31 * 86_400_000)
    set({ name: 'OTHER', changedAtMicros: harness.system.nowMicros() })
    expect(codeOf(() => setConfiguration(harness.product, harness.actor, first))).toBe(
      'PRODUCT_INVALID',
    )
    expect(revision()).toBe(2n)
  })

  test.each<[string, Partial<SetInput>]>([
    ['another name', { name: 'OTHER' }],
    ['another value', { value: 'other' }],
    ['another kind', { kind: 'secret' }],
    ['another expected revision', { expectedRevision: 1n }],
    ['another time', { changedAtMicros: NOW + 1n }],
  ])('an Operation ID with %s is rejected as reused', (_, more) => {
    const first = input()
    setConfiguration(harness.product, harness.actor, first)
    const reuse = () => setConfiguration(harness.product, harness.actor, { ...first, ...more })
    expect(codeOf(reuse)).toBe('PRODUCT_OPERATION_REUSED')
    expect(revision()).toBe(1n)
  })

  test('an Operation ID is rejected as reused for a deletion or by another operator', () => {
    const first = input()
    setConfiguration(harness.product, harness.actor, first)
    const { kind, value, ...deletion } = first
    const reuse = () => deleteConfiguration(harness.product, harness.actor, deletion)
    expect(codeOf(reuse)).toBe('PRODUCT_OPERATION_REUSED')
    const another = () => setConfiguration(harness.product, actorWith(), first)
    expect(codeOf(another)).toBe('PRODUCT_OPERATION_REUSED')
  })

  test('the Operation ID of a failed request can be used again', () => {
    const first = input({ expectedRevision: 5n })
    expect(codeOf(() => setConfiguration(harness.product, harness.actor, first))).toBe(
      'PRODUCT_CAS_CONFLICT',
    )
    const corrected = { ...first, expectedRevision: 0n }
    expect(setConfiguration(harness.product, harness.actor, corrected).operation.replayed).toBe(
      false,
    )
  })
})

describe('the history', () => {
  test('the history is paged newest first without a gap or a repeat', () => {
    for (let i = 0; i < 5; i++) set({ name: `N${i}` })
    unset({ name: 'N0' })
    set({ name: 'KEY', kind: 'secret', value: SECRET })
    const seen: string[] = []
    let after: bigint | null = null
    do {
      const page: ReturnType<typeof readConfigurationHistory> = readConfigurationHistory(
        harness.product,
        { after, limit: 3 },
      )
      expect(page.changes.length).toBeLessThanOrEqual(3)
      for (const { revision, action, kind, name } of page.changes) {
        seen.push(`${revision} ${action} ${kind} ${name}`)
      }
      // A change between two pages is newer than every later page.
      if (after === null) set({ name: 'MEANWHILE' })
      after = page.next
    } while (after !== null)
    expect(seen).toEqual([
      '7 set secret KEY',
      '6 delete variable N0',
      '5 set variable N4',
      '4 set variable N3',
      '3 set variable N2',
      '2 set variable N1',
      '1 set variable N0',
    ])
  })

  test('the history has no further page after one that is exactly full', () => {
    set()
    expect(readConfigurationHistory(harness.product, { after: null, limit: 1 }).next).toBeNull()
    expect(readConfigurationHistory(harness.product, { after: 1n, limit: 1 }).changes).toEqual([])
  })
})

test('each change is audited once, with its operation and without its value', async () => {
  const first = input({ name: 'KEY', kind: 'secret', value: SECRET })
  setConfiguration(harness.product, harness.actor, first)
  setConfiguration(harness.product, harness.actor, first)
  unset({ name: 'KEY' })
  await harness.product.audit.whenIdle()
  expect(harness.audited.map(({ operation, subject }) => [operation, subject])).toEqual([
    ['product.configuration.set', 'KEY'],
    ['product.configuration.delete', 'KEY'],
  ])
  expect(harness.audited[0]).toMatchObject({ operationId: first.operationId })
  expect(Bun.inspect(harness.audited)).not.toContain(SECRET)
})

test('a secret, even a deleted one, is in no file of the root and not in the log', async () => {
  const second = `${SECRET}-second`
  set({ name: 'KEY', kind: 'secret', value: SECRET })
  set({ name: 'KEY', kind: 'secret', value: second })
  set({ name: 'GONE', kind: 'secret', value: SECRET })
  unset({ name: 'GONE' })
  // A variable proves that the search finds a text.
  set({ name: 'SEEN', value: 'plainly-visible' })
  await harness.product.audit.whenIdle()
  const files = [...new Bun.Glob('**/*').scanSync({ cwd: harness.directory, onlyFiles: true })]
  let seen = false
  for (const file of files.filter((name) => name !== 'lock.db')) {
    const bytes = Buffer.from(await Bun.file(`${harness.directory}/${file}`).arrayBuffer())
    seen ||= bytes.includes('plainly-visible')
    for (const text of [SECRET, second, Buffer.from(SECRET).toString('base64').slice(0, 24)]) {
      expect(bytes.includes(text), file).toBe(false)
    }
  }
  expect(seen).toBe(true)
  expect(harness.log.text()).not.toContain(SECRET)
})

test('a sealed secret that was copied to another name cannot be read', () => {
  set({ name: 'LOW', kind: 'secret', value: 'low' })
  set({ name: 'HIGH', kind: 'secret', value: SECRET })
  harness.root.control.transaction((tx) =>
    tx.run(
      `update configuration set sealed = (select sealed from configuration where name = 'HIGH')
        where name = 'LOW'`,
    ),
  )
  harness.product.configuration.reload()
  expect(codeOf(() => live().secret('LOW'))).toBe('INTERNAL')
  expect(live().secret('HIGH')?.reveal()).toBe(SECRET)
})

test('a call that started before a change sees the old state, the next call the new one', () => {
  set({ value: 'old' })
  const before = live()
  expect(before.variable('GREETING')).toBe('old')
  set({ value: 'new' })
  expect(before.variable('GREETING')).toBe('old')
  expect(live()).not.toBe(before)
  expect(live().variable('GREETING')).toBe('new')
})

test('a variable cannot be read as a secret, and a secret cannot be read as a variable', () => {
  set({ name: 'V' })
  set({ name: 'S', kind: 'secret', value: SECRET })
  expect([live().variable('S'), live().secret('V')]).toEqual([null, null])
  expect([live().variable('NONE'), live().secret('NONE')]).toEqual([null, null])
})
