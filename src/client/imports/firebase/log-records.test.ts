import { describe, expect, it } from 'vitest'
import { logOf } from '../../../../testing/imports/firestore-exports.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import { EXPORT_LINE_BYTES_MAX } from '../archives/lines.ts'
import { maskedChecksum, recordsOf } from './log-records.ts'
import { parseMessage } from './protobuf.ts'

async function split(...chunks: Uint8Array[]): Promise<string[]> {
  const stream = (async function* () {
    for (const chunk of chunks) yield chunk
  })()
  const found: string[] = []
  for await (const record of recordsOf('output-0', stream)) {
    found.push(Buffer.from(record).toString('latin1'))
  }
  return found
}

describe('a log of records', () => {
  it('a log of records is split at any chunk, with records over several blocks', async () => {
    // The second record fills its block, the fourth one leaves room for a head alone.
    const lengths = [1, 32_753, 1, 32_746, 100_000, 0, 1]
    const records = lengths.map((length, i) => String(i).repeat(length))
    const log = Buffer.from(logOf(records.map((text) => Buffer.from(text))))
    for (const at of [0, 1, 6, 7, 32_767, 32_768, 32_769, 70_000, log.length]) {
      expect(await split(log.subarray(0, at), log.subarray(at))).toEqual(records)
    }
    for (const at of [1, 7, 140_000, log.length - 1]) {
      await expect(split(log.subarray(0, at))).rejects.toMatchObject({
        code: 'CLIENT_EXPORT_INVALID',
      })
    }
  })

  it('a log that lacks the begin or the end of a record is rejected', async () => {
    const log = logOf([Buffer.alloc(100_000, 'a')])
    const withoutBegin = log.subarray(32_768)
    const withoutEnd = Buffer.concat([log.subarray(0, 32_768), log])
    for (const damaged of [withoutBegin, withoutEnd]) {
      await expect(split(damaged)).rejects.toMatchObject({
        code: 'CLIENT_EXPORT_INVALID',
        detail: expect.stringContaining('lacks a part'),
      })
    }
  })

  it('a log with a hole, or with bytes behind the padding of a block, is rejected', async () => {
    const log = logOf([Buffer.from('first')])
    const padded = Buffer.concat([log, Buffer.alloc(32_768 - log.length)])
    expect(await split(padded, log)).toEqual(['first', 'first'])
    const changed = Buffer.from(padded)
    changed[32_767] = 1
    for (const damaged of [Buffer.concat([padded, Buffer.alloc(32_768), log]), changed]) {
      await expect(split(damaged)).rejects.toMatchObject({
        code: 'CLIENT_EXPORT_INVALID',
        detail: expect.stringContaining('zeros'),
      })
    }
  })

  it('a log with a record of countless empty fragments is rejected', async () => {
    const fragment = (type: number) => {
      const head = Buffer.alloc(7)
      head.writeUInt32LE(maskedChecksum(Buffer.of(type)), 0)
      head[6] = type
      return head
    }
    const middle = Buffer.concat(Array.from({ length: 1_000 }, () => fragment(3)))
    await expect(split(fragment(2), middle, fragment(4))).rejects.toMatchObject({
      code: 'CLIENT_EXPORT_INVALID',
      detail: expect.stringContaining('too often'),
    })
  })

  it.each([
    ['the field 0', '02ffff'],
    ['a field beyond 2^29', 'f8ffffffffffffffff0100'],
    ['a length beyond 2^63', '0affffffffffffffffff01'],
    ['a varint of more than 64 bits', '08ffffffffffffffffffff01'],
    ['a group that does not end', '0b0801'],
  ])('a message with %s is rejected', (_, hex) => {
    expect(() => parseMessage(Buffer.from(hex, 'hex'))).toThrow(ValidationError)
  })

  it('a log with a record that is too long is rejected', async () => {
    const log = logOf([new Uint8Array(EXPORT_LINE_BYTES_MAX + 1)])
    await expect(split(log)).rejects.toMatchObject({
      code: 'CLIENT_EXPORT_INVALID',
      detail: expect.stringContaining('more than'),
    })
  })
})
