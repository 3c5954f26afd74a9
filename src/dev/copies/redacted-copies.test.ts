/**
 * @module-tag slow
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type BackedUpServer, write } from '../../../testing/backups/backed-up-server.ts'
import {
  CopiedServer,
  change,
  documentsOf,
  PEOPLE,
  person,
  REDACTION,
  withStore,
} from '../../../testing/backups/copied-servers.ts'
import { fc } from '../../../testing/properties.ts'
import { encodeStored } from '../../value/stored.ts'
import type { Value } from '../../value/values.ts'

let copied: CopiedServer
let server: BackedUpServer

beforeEach(async () => {
  copied = await CopiedServer.open()
  server = copied.server
})
afterEach(() => copied.dispose())

/** Texts that are long enough not to occur elsewhere by chance. */
const word = fc
  .array(fc.constantFrom(...'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ0123456789'), {
    minLength: 10,
    maxLength: 30,
  })
  .map((characters) => characters.join(''))

test('a redacted copy has no original in its files, entries of indexes included', async () => {
  let sequence = 0
  const originals = new Set<string>()
  const bytes: Uint8Array[] = []
  const secret = (text: string) => {
    originals.add(text)
    return text
  }
  const fields = fc
    .record({
      email: word.map((text) => `${text}@example.com`),
      name: word,
      photo: fc.uint8Array({ minLength: 12, maxLength: 40 }),
      tags: fc.array(word, { maxLength: 3 }),
      street: word,
    })
    .map(({ email, name, photo, tags, street }) => {
      bytes.push(photo)
      const home = new Map([['street', secret(street)]])
      const texts = { email: secret(email), name: secret(name), tags: tags.map(secret) }
      return encodeStored(new Map<string, Value>(Object.entries({ ...texts, photo, home })))
    })
  const [before, after] = fc.sample(fc.array(fields, { minLength: 50, maxLength: 50 }), 2)
  await server.commit(++sequence, ...before!.map((text, i) => write('people', i + 1, text)))
  await server.base()
  await server.increment({ from: 1, to: 2 }, [
    { t: 'commit', sequence: 2, atMicros: '2' },
    ...after!.map((text, i) => change(i + 30, 2, text)),
  ])
  const root = copied.newRoot()
  expect((await copied.copy(root, { redaction: REDACTION }))?.tables[0]?.documents).toBe(79)
  await withStore(root, async (store) => {
    const indexed = ['email', 'name', 'photo'].map((field) => ({
      table: 'people',
      fields: [field],
    }))
    for (const { id } of await store.ensureIndexes(indexed)) await store.buildIndex(id)
  })
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  expect(files.map(({ name }) => name)).toContain('documents.db')
  expect(originals.size).toBeGreaterThan(300)
  for (const entry of files) {
    const content = readFileSync(join(entry.parentPath, entry.name))
    const found = [...originals].filter((text) => content.includes(text))
    expect(found, entry.name).toEqual([])
    for (const original of bytes) {
      expect(content.includes(original), entry.name).toBe(false)
      expect(content.includes(Buffer.from(original).toString('base64url'))).toBe(false)
    }
  }
})

test('a redacted copy has equal values where production has, and its own ones', async () => {
  await server.commit(1, person(1, {}), person(2, {}), person(3, { email: 'b@example.com' }))
  await server.base()
  const emails = async () => {
    const root = copied.newRoot()
    await copied.copy(root, { redaction: REDACTION })
    return (await documentsOf(root)).map(([, fields]) => (fields as { email: string }).email)
  }
  const [one, same, other] = await emails()
  expect([one === same, one === other]).toEqual([true, false])
  expect((await emails())[0]).not.toBe(one)
})

test('a copy whose fakes do not fit the schema leaves the root as it was', async () => {
  await server.commit(1, person(1, {}), person(2, { name: 'id-12' }))
  await server.base()
  const root = copied.newRoot()
  const name = { type: 'string', pattern: 'Ana|id-[0-9]+' } as const
  const workspace = { tables: [{ ...PEOPLE, fields: { ...PEOPLE.fields, name } }] }
  const redaction = { tables: { people: { name: 'fake' } } }
  await expect(copied.copy(root, { redaction, workspace })).rejects.toMatchObject({
    code: 'REDACTION_INVALID',
    detail: expect.stringContaining('people.name'),
  })
  expect(
    ['documents.db', 'copy.json', 'copy-files.db', 'copy.unfinished'].filter((file) =>
      existsSync(join(root, file)),
    ),
  ).toEqual([])
  expect((await copied.copy(root, { workspace }))?.tables[0]?.documents).toBe(2)
})
