/** Ad-hoc signatures of a small executable that is laid out as the linker lays out a large one. */
import { describe, expect, test } from 'vitest'
import { isMachO, isSignatureValid, readSignature, signAdHoc } from './mach-o.ts'

const PAGE = 4096
const TEXT_BYTES = 16_384
const HARDENED = 0x10000

interface Shape {
  /** Bytes of __LINKEDIT before the signature; 16-byte aligned as the linker does it. */
  readonly linkEditBytes?: number
  /** Room of the signature that is there. */
  readonly signatureBytes?: number
  readonly signatureCommand?: boolean
}

/** Header, __TEXT, __LINKEDIT with some bytes, and room for a signature at its end. */
function executable(shape: Shape = {}): Buffer {
  const { linkEditBytes = 6_000, signatureBytes = 64, signatureCommand = true } = shape
  const dataAt = TEXT_BYTES + linkEditBytes
  const bytes = Buffer.alloc(dataAt + signatureBytes)
  for (let i = 0; i < dataAt; i++) bytes[i] = (i * 31) % 251
  bytes.fill(0, 0, 512)
  bytes.writeUInt32LE(0xfeedfacf, 0)
  bytes.writeUInt32LE(signatureCommand ? 3 : 2, 16)
  segment(bytes, 32, '__TEXT', [0x100000000, TEXT_BYTES, 0, TEXT_BYTES])
  const linkEdit = [0x100004000, PAGE * 4, TEXT_BYTES, linkEditBytes + signatureBytes]
  segment(bytes, 104, '__LINKEDIT', linkEdit)
  if (signatureCommand) {
    for (const [i, word] of [0x1d, 16, dataAt, signatureBytes].entries()) {
      bytes.writeUInt32LE(word, 176 + i * 4)
    }
  }
  return bytes
}

function segment(bytes: Buffer, at: number, name: string, places: readonly number[]): void {
  bytes.writeUInt32LE(0x19, at)
  bytes.writeUInt32LE(72, at + 4)
  bytes.write(name, at + 8, 'latin1')
  for (const [i, place] of places.entries()) bytes.writeBigUInt64LE(BigInt(place), at + 24 + i * 8)
}

describe('ad-hoc signatures', () => {
  test.each([1, 15, 16, PAGE, 3 * PAGE + 1, 200_000])(
    'a signature covers an executable with %d bytes of link data',
    (size) => {
      const linkEditBytes = Math.ceil(size / 16) * 16
      const signed = signAdHoc(executable({ linkEditBytes }), 'svc-server')
      expect(readSignature(signed)).toEqual({
        flags: 2,
        identifier: 'svc-server',
        isComplete: true,
        brokenPages: [],
        pages: Math.ceil((TEXT_BYTES + linkEditBytes) / PAGE),
      })
      expect(isSignatureValid(signed)).toBe(true)
    },
  )

  test('a signature changes no code and makes room for itself at the end', () => {
    const unsigned = executable()
    const signed = signAdHoc(unsigned, 'svc-server')
    const dataAt = TEXT_BYTES + 6_000
    expect(signed.subarray(512, dataAt).equals(unsigned.subarray(512, dataAt))).toBe(true)
    expect(signed.readUInt32LE(176 + 12)).toBe(signed.length - dataAt)
    const linkEdit = 104
    expect(Number(signed.readBigUInt64LE(linkEdit + 48))).toBe(signed.length - TEXT_BYTES)
    const room = Number(signed.readBigUInt64LE(linkEdit + 32))
    expect([room % (4 * PAGE), room >= signed.length - TEXT_BYTES]).toEqual([0, true])
  })

  test('a signature names the segment of the code, which the kernel compares', () => {
    const signed = signAdHoc(executable(), 'svc-server')
    const directory = signed.subarray(TEXT_BYTES + 6_000 + 20)
    const fields = [64, 72, 80].map((at) => Number(directory.readBigUInt64BE(at)))
    expect(fields).toEqual([0, TEXT_BYTES, 1])
  })

  test('a signature has the same bytes each time, also if it replaces itself', () => {
    const once = signAdHoc(executable(), 'svc-server')
    expect(signAdHoc(executable(), 'svc-server').equals(once)).toBe(true)
    expect(signAdHoc(once, 'svc-server').equals(once)).toBe(true)
    const shrunk = signAdHoc(executable({ signatureBytes: 100_000 }), 'svc-server')
    expect(shrunk.length).toBe(once.length)
  })

  test.each([31, 200, PAGE, TEXT_BYTES + 5_999])(
    'a changed byte at %d breaks the signature',
    (at) => {
      const signed = signAdHoc(executable(), 'svc-server')
      signed[at]! ^= 1
      expect(readSignature(signed).brokenPages).toEqual([Math.floor(at / PAGE)])
      expect(isSignatureValid(signed)).toBe(false)
    },
  )

  test('a signature does not cover bytes that were added later', () => {
    const signed = signAdHoc(executable(), 'svc-server')
    const dataAt = TEXT_BYTES + 6_000
    const signature = signed.subarray(dataAt)
    const added = Buffer.alloc(2 * PAGE)
    const grown = Buffer.concat([signed.subarray(0, dataAt), added, signature])
    grown.writeUInt32LE(dataAt + added.length, 176 + 8)
    expect(readSignature(grown)).toMatchObject({ isComplete: false, brokenPages: [0] })
    const room = BigInt(grown.length - TEXT_BYTES)
    grown.writeBigUInt64LE(room, 104 + 48)
    expect(isSignatureValid(signAdHoc(grown, 'svc-server'))).toBe(true)
  })

  test('a signature replaces the hardened runtime without its entitlements', () => {
    const hardened = signAdHoc(executable(), 'bun')
    hardened.writeUInt32BE(HARDENED, TEXT_BYTES + 6_000 + 20 + 12)
    expect(readSignature(hardened).flags).toBe(HARDENED)
    expect(readSignature(signAdHoc(hardened, 'svc-server')).flags).toBe(2)
  })
})

test.each([
  ['of another format', Buffer.from('\x7fELF'.padEnd(64, '\0')), 'no Mach-O executable'],
  ['without a load command for it', executable({ signatureCommand: false }), 'no room'],
  ['with data after it', Buffer.concat([executable(), Buffer.alloc(16)]), 'not the end'],
])('an executable %s is not signed', (_, bytes, reason) => {
  expect(() => signAdHoc(bytes, 'svc-server')).toThrow(reason)
})

test('only 64-bit files are recognised as Mach-O', () => {
  expect([isMachO(executable()), isMachO(Buffer.alloc(4)), isMachO(Buffer.alloc(64))]).toEqual([
    true,
    false,
    false,
  ])
})
