import { describe, expect, test } from 'vitest'
import { fc } from '../../testing/properties.ts'
import { decodeUlid, encodeUlid, ID_PREFIXES, IdFactory, idMillis, isId, tableOfId } from './ids.ts'

const time = fc.nat({ max: 2 ** 48 - 1 })
const entropy = fc.uint8Array({ minLength: 10, maxLength: 10 })

describe('identifiers', () => {
  test('text order is the order of time and entropy', () => {
    fc.assert(
      fc.property(time, entropy, time, entropy, (t1, e1, t2, e2) => {
        const a = encodeUlid(t1, e1)
        const b = encodeUlid(t2, e2)
        const order = t1 - t2 || Buffer.compare(e1, e2)
        expect(Math.sign(order)).toBe(a < b ? -1 : a > b ? 1 : 0)
        expect(idMillis(`opn_${a}`)).toBe(t1)
        const bytes = Buffer.from(decodeUlid(a))
        expect(bytes.readUIntBE(0, 6)).toBe(t1)
        expect(bytes.subarray(6).equals(e1)).toBe(true)
      }),
    )
  })

  test('a changed character makes another identifier or an invalid one', () => {
    fc.assert(
      fc.property(
        time,
        entropy,
        fc.nat({ max: 25 }),
        fc.string({ minLength: 1, maxLength: 1 }),
        (t, e, at, char) => {
          const id = `opn_${encodeUlid(t, e)}`
          const changed = id.slice(0, 4 + at) + char + id.slice(5 + at)
          const canonical = /^[0-9A-HJKMNP-TV-Z]$/.test(char) && (at > 0 || /[0-7]/.test(char))
          expect(isId('opn', changed)).toBe(canonical)
        },
      ),
    )
  })

  test.each(['I', 'L', 'O', 'U'])('the alias %s is rejected', (alias) => {
    expect(isId('rel', `rel_0${alias}ARZ3NDEKTSV4RRFFQ69G5FAV`)).toBe(false)
  })

  test('time beyond 48 bits, lower case and other lengths are rejected', () => {
    expect(isId('rel', 'rel_8ZZZZZZZZZZZZZZZZZZZZZZZZZ')).toBe(false)
    expect(isId('rel', 'rel_7ZZZZZZZZZZZZZZZZZZZZZZZZZ')).toBe(true)
    expect(isId('rel', 'rel_01arz3ndektsv4rrffq69g5fav')).toBe(false)
    expect(isId('rel', 'rel_01ARZ3NDEKTSV4RRFFQ69G5FA')).toBe(false)
    expect(isId('rel', 'prj_01ARZ3NDEKTSV4RRFFQ69G5FAV')).toBe(false)
  })

  test('identifiers of a factory ascend within a millisecond and when the clock goes back', () => {
    const clock = { millis: 1_000 }
    const ids = new IdFactory({
      nowMillis: () => clock.millis,
      randomBytes: (length) => new Uint8Array(length).fill(255),
    })
    const made = Array.from({ length: 50 }, (_, i) => {
      clock.millis = i === 20 ? 10 : i > 40 ? 2_000 : clock.millis
      return ids.make('opn')
    })
    expect(made.toSorted()).toEqual(made)
    expect(new Set(made).size).toBe(made.length)
  })

  test('every prefix identifies one kind only', () => {
    const ids = new IdFactory({ nowMillis: () => 1, randomBytes: (n) => new Uint8Array(n) })
    for (const prefix of ID_PREFIXES) {
      const id = ids.make(prefix)
      expect(ID_PREFIXES.filter((other) => isId(other, id))).toEqual([prefix])
    }
  })

  test('the last underscore splits a document ID', () => {
    expect(tableOfId('messages_01ARZ3NDEKTSV4RRFFQ69G5FAV')).toBe('messages')
    expect(tableOfId('Messages_01ARZ3NDEKTSV4RRFFQ69G5FAV')).toBeNull()
    expect(tableOfId('_01ARZ3NDEKTSV4RRFFQ69G5FAV')).toBeNull()
  })
})
