/** Tests of the signature header of RPMs, with headers that are made here. */
import { expect, test } from 'vitest'
import { signatureOf, signedPart, withSignature } from './rpm-signature.ts'

const MAGIC = Buffer.from('8eade80100000000', 'hex')
const PAYLOAD = Buffer.from('payload')

function numbers(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) bytes.writeInt32BE(value, index * 4)
  return bytes
}

function header(rows: readonly Buffer[], data: Buffer): Buffer {
  return Buffer.concat([MAGIC, numbers(rows.length, data.length), ...rows, data])
}

/** A package with the digest of its header, its size, and a header of one text. */
function unsigned(): Buffer {
  const lead = Buffer.alloc(96)
  lead.writeUInt32BE(0xedabeedb)
  const digest = Buffer.from(`${'0'.repeat(64)}\0`)
  const data = Buffer.concat([digest, Buffer.alloc(3), numbers(7)])
  const trailer = numbers(62, 7, -48, 16)
  const rows = [numbers(62, 7, data.length, 16), numbers(273, 6, 0, 1), numbers(1000, 4, 68, 1)]
  const signatures = header(rows, Buffer.concat([data, trailer]))
  const pad = Buffer.alloc((8 - (signatures.length % 8)) % 8)
  const main = header([numbers(1000, 6, 0, 1)], Buffer.from('svc\0'))
  return Buffer.concat([lead, signatures, pad, main, PAYLOAD])
}

/** The beginning of an OpenPGP signature of version 4 by an algorithm, in the old format. */
const signature = (algorithm: number, length = 30) =>
  Buffer.from([0x88, length, 4, 0, algorithm, 8, ...Array(length).fill(0xaa)])

/** The tags of the signature header, in their order, with the offsets of their data. */
function entries(archive: Buffer): number[][] {
  const count = archive.readUInt32BE(96 + 8)
  return Array.from({ length: count }, (_, index) => {
    const at = 96 + 16 + index * 16
    return [archive.readUInt32BE(at), archive.readUInt32BE(at + 8)]
  })
}

test.each([
  [1, 268],
  [22, 267],
  [19, 267],
])('a signature by the algorithm %i has the tag %i', (algorithm, tag) => {
  const signed = withSignature(unsigned(), signature(algorithm))
  expect(signatureOf(signed)).toEqual(signature(algorithm))
  expect(entries(signed).map(([each]) => each)).toEqual([62, tag, 273, 1000])
})

test('a signature changes neither the part that it covers nor the payload', () => {
  const archive = unsigned()
  const signed = withSignature(archive, signature(22))
  expect(signedPart(signed)).toEqual(signedPart(archive))
  expect(signedPart(archive).subarray(0, 8)).toEqual(MAGIC)
  expect(signed.subarray(-PAYLOAD.length)).toEqual(PAYLOAD)
  expect(signed.subarray(0, 96)).toEqual(archive.subarray(0, 96))
  expect(signatureOf(archive)).toBeNull()
})

test('data stand in the order of their entries, aligned, before the trailer of the region', () => {
  const signed = withSignature(unsigned(), signature(22, 31))
  const [region, ...others] = entries(signed).map(([, offset]) => offset!)
  expect(others).toEqual([...others].sort((a, b) => a - b))
  expect(others.at(-1)! % 4).toBe(0)
  expect(region).toBe(others.at(-1)! + 4)
  const data = 96 + 16 + (others.length + 1) * 16
  expect(signed.subarray(data + region!, data + region! + 16)).toEqual(numbers(62, 7, -64, 16))
  expect((signed.indexOf(signedPart(signed)) - 96) % 8).toBe(0)
})

test('another signature replaces the one that a package has', () => {
  const signed = withSignature(unsigned(), signature(1))
  const again = withSignature(signed, signature(22))
  expect(again.equals(withSignature(unsigned(), signature(22)))).toBe(true)
})

test('what is no package and what is no signature is rejected', () => {
  expect(() => signedPart(Buffer.from('no package'))).toThrow('its lead is missing')
  const archive = unsigned()
  expect(() => signedPart(archive.subarray(0, 100))).toThrow('a header is missing')
  expect(() => withSignature(archive, Buffer.from('no signature'))).toThrow('no OpenPGP signature')
})
