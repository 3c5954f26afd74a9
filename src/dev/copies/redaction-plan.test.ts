import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isFault } from '../../errors/fault.ts'
import type { TableManifest } from '../../value/manifest.ts'
import type { FieldShape } from '../../value/schema/field-shapes.ts'
import { decodeStored, encodeStored } from '../../value/stored.ts'
import type { ValidatorJson } from '../../value/validators.ts'
import type { ValueObject } from '../../value/values.ts'
import { KeyedValues } from './keyed-values.ts'
import { parseRedaction } from './redaction-file.ts'
import { planRedaction } from './redaction-plan.ts'
import { Redactor } from './redactor.ts'

const STRING = { type: 'string' } as const
const optional = (inner: ValidatorJson) => ({ type: 'optional', inner }) as const
const list = (items: ValidatorJson): ValidatorJson => ({ type: 'array', items })
const role = (name: string): ValidatorJson => ({ type: 'literal', value: { string: name } })

const USERS: TableManifest = {
  name: 'users',
  indexes: [],
  fields: {
    email: STRING,
    name: STRING,
    phone: { type: 'nullable', inner: STRING },
    nick: optional(STRING),
    code: { type: 'string', maximumLength: 10 },
    age: { type: 'int64', minimum: '0', maximum: '150' },
    role: { type: 'union', members: [role('admin'), role('user')] },
    team: { type: 'id', table: 'teams' },
    photo: { type: 'bytes' },
    vip: { type: 'boolean' },
    born: { type: 'timestamp' },
    address: { type: 'object', fields: { street: STRING, city: STRING } },
    contacts: list({ type: 'object', fields: { kind: role('mail'), value: STRING } }),
    labels: { type: 'record', values: STRING },
    notes: optional({ type: 'any' }),
  },
}
const SHAPES: ReadonlyMap<string, FieldShape> = new Map([
  ['users', { email: null, name: null, legacy: null, address: { street: null, zip: null } }],
  ['invoices', { number: null }],
])

function redactor(file: unknown, key = 1): Redactor {
  const redaction = parseRedaction(Buffer.from(JSON.stringify(file)))
  const plan = planRedaction(redaction, { declared: [USERS], shapes: SHAPES })
  return new Redactor(plan, new KeyedValues(Buffer.alloc(32, key)))
}

/** Redacts stored JSON as the rules of the table users say. */
function redacted(rules: object, fields: object, key?: number) {
  const document = decodeStored(JSON.stringify(fields)) as ValueObject
  const made = redactor({ tables: { users: rules } }, key).redact('users', document)
  return JSON.parse(encodeStored(made))
}

function rejected(file: unknown): string | undefined {
  const text = typeof file === 'string' ? file : JSON.stringify(file)
  try {
    const redaction = parseRedaction(Buffer.from(text))
    planRedaction(redaction, { declared: [USERS], shapes: SHAPES })
    return undefined
  } catch (error) {
    if (isFault(error, 'REDACTION_INVALID')) return error.detail
    throw error
  }
}

const users = (rules: object) => ({ tables: { users: rules } })

test('the sample of the guide is a redaction file', () => {
  const guide = readFileSync(join(import.meta.dirname, '../../docs/dev.md'), 'utf8')
  const [, sample] = /### The redaction file\n\n```json\n(.*?)```/s.exec(guide)!
  const { tables, hasFiles } = parseRedaction(Buffer.from(sample!))
  expect([[...tables.keys()], hasFiles]).toEqual([['users'], true])
})

describe('a redaction file is rejected', () => {
  test.each([
    ['[]', 'an object ($)'],
    ['{"tables":{},"tables":{}}', 'duplicate'],
    ['{"files":"none"}', '$.tables'],
    ['{"tables":{},"table":{}}', '$.table'],
    ['{"tables":{},"files":false}', '"on-demand" or "none" ($.files)'],
    ['{"tables":{"users":{}}}', 'at least one field ($.tables.users)'],
    ['{"tables":{"users":"fake"}}', 'an object ($.tables.users)'],
    ['{"tables":{"users":{"email":"blur"}}}', '$.tables.users.email'],
    ['{"tables":{"users":{"email":null}}}', '"null"'],
  ])('a file is rejected for its form: %s', (file, detail) => {
    expect(rejected(file)).toContain(detail)
  })

  test.each<[object, string]>([
    [{ tables: { user: { email: 'fake' } } }, 'table user. Did you mean users?'],
    [{ tables: { files: { key: 'fake' } } }, '"files": "none"'],
    [users({ emial: 'fake' }), 'users.emial: no such field. Did you mean email?'],
    [
      users({ address: { sreet: 'fake' } }),
      'users.address.sreet: no such field. Did you mean street',
    ],
    [users({ contacts: { valeu: 'fake' } }), 'Did you mean value?'],
    [users({ _id: 'hash' }), 'users._id: fields of the system stay'],
    [users({ email: 'null' }), 'users.email: the schema has neither v.nullable nor v.optional'],
    [users({ contacts: { value: 'null' } }), 'users.contacts.value: the schema has neither'],
    [users({ code: 'hash' }), 'users.code: a hash has 32 characters, and the schema allows 10'],
    [users({ age: 'hash' }), 'only texts and bytes are hashed, not int64'],
    [users({ role: 'fake' }), 'users.role: an ID or one of the values that the schema lists'],
    [users({ team: 'hash' }), 'users.team: an ID'],
    [{ tables: { invoices: { nmber: 'fake' } } }, 'Did you mean number?'],
  ])('a file is rejected for what cannot be done: %o', (file, detail) => {
    expect(rejected(file)).toContain(detail)
  })

  test('a file is rejected if a document lacks the fields that it names', () => {
    expect(() => redacted({ notes: { text: 'fake' } }, { notes: 'plain' })).toThrow(
      expect.objectContaining({ code: 'REDACTION_INVALID' }),
    )
  })
})

describe('a redaction', () => {
  test('a redaction leaves other fields and other tables as they are', () => {
    const fields = decodeStored('{"email":"a@b.co"}') as ValueObject
    expect(redactor(users({ name: 'fake' })).redact('teams', fields)).toBe(fields)
    expect(redacted({ name: 'fake' }, { email: 'a@b.co', name: 'Jane' })).toEqual({
      email: 'a@b.co',
      name: expect.stringMatching(/^[A-Z][a-z]{3}$/),
    })
  })

  test('a redaction hashes with the key of the copy', () => {
    const [one, two] = [1, 2].map((key) => redacted({ name: 'hash' }, { name: 'Jane' }, key).name)
    expect([one, two]).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), expect.any(String)])
    expect(one).not.toBe(two)
    expect(redacted({ name: 'hash' }, { name: 'Jane' }).name).toBe(one)
    expect(redacted({ photo: 'hash' }, { photo: { $b: 'SmFuZQ' } }).photo.$b).toHaveLength(43)
  })

  test('a redaction writes null where the schema has it, and else leaves the field out', () => {
    const rules = { phone: 'null', nick: 'null', legacy: 'null' }
    const fields = { phone: '123', nick: 'jd', legacy: 'x', name: 'Jane' }
    expect(redacted(rules, fields)).toEqual({ phone: null, name: 'Jane' })
  })

  test('a redaction reaches into objects, arrays and records, and keeps literals', () => {
    const rules = {
      address: { street: 'fake', zip: 'hash' },
      contacts: 'fake',
      labels: { '*': 'hash' },
    }
    const made = redacted(rules, {
      address: { street: 'Elm 12', city: 'Rome', zip: '00100' },
      contacts: [{ kind: 'mail', value: 'jane' }],
      labels: { home: 'blue' },
    })
    expect(made).toEqual({
      address: {
        street: expect.stringMatching(/^[A-Z][a-z]{2} \d{2}$/),
        city: 'Rome',
        zip: expect.stringMatching(/^[0-9a-f]{32}$/),
      },
      contacts: [{ kind: 'mail', value: expect.stringMatching(/^[a-z]{4}$/) }],
      labels: { home: expect.stringMatching(/^[0-9a-f]{32}$/) },
    })
    expect(made.contacts[0].value).not.toBe('jane')
  })

  test('a redaction replaces the names of records too, but not those of the schema', () => {
    const rules = { labels: 'fake', address: 'fake', notes: 'hash' }
    const made = redacted(rules, {
      labels: { jane: 'x' },
      address: { street: 'Elm', city: 'Rome' },
      notes: { friend: { name: 'Joe' } },
    })
    expect(Object.keys(made.labels)).toEqual([expect.stringMatching(/^(?!jane)[a-z]{4}$/)])
    expect(Object.keys(made.address)).toEqual(['street', 'city'].sort())
    expect(JSON.stringify(made.notes)).not.toMatch(/friend|name|Joe/)
  })

  test('a redaction fakes every kind of value and keeps references', () => {
    const team = { $d: 'teams_01JZ0000000000000000000000' }
    const fields = {
      age: { $i: '42' },
      vip: true,
      born: { $t: '1000000000000000' },
      photo: { $b: 'SmFuZQ' },
      notes: [team, 7, null],
      team,
    }
    const rules = { age: 'fake', vip: 'fake', born: 'fake', photo: 'fake', notes: 'fake' }
    const made = redacted(rules, fields)
    expect([made.vip, made.team, made.notes[0], made.notes[2]]).toEqual([false, team, team, null])
    for (const name of ['age', 'born', 'photo'] as const)
      expect(made[name]).not.toEqual(fields[name])
    expect(Number(made.age.$i)).toBeLessThanOrEqual(99)
  })
})
