import zlib from 'node:zlib'
import { expect, test } from 'vitest'
import { fc } from '../../testing/properties.ts'
import {
  CONTENT_CODINGS,
  type ContentCoding,
  compressInThread,
  compressText,
  encodeAround,
} from './compression.ts'

/** Decompresses one member or frame, and fails for bytes behind it. */
function decoded(coding: ContentCoding, bytes: Uint8Array): string {
  if (coding === 'zstd') {
    const frame = zlib.zstdDecompressSync(bytes, { info: true }) as unknown as Decompressed
    return textOf(frame, bytes)
  }
  return textOf(zlib.gunzipSync(bytes, { info: true }) as unknown as Decompressed, bytes)
}

interface Decompressed {
  readonly buffer: Buffer
  readonly engine: { readonly bytesWritten: number }
}

function textOf({ buffer, engine }: Decompressed, bytes: Uint8Array): string {
  expect(engine.bytesWritten).toBe(bytes.length)
  return buffer.toString()
}

/** Texts of all lengths: random ones, repeated ones, and those that cannot be compressed. */
const anyText = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 2_000 }),
  fc
    .tuple(fc.string({ unit: 'grapheme', maxLength: 300 }), fc.integer({ min: 0, max: 3_000 }))
    .map(([text, count]) => text.repeat(count)),
  fc.uint8Array({ maxLength: 200_000, size: 'max' }).map((bytes) => bytes.toBase64()),
)
const edge = fc.string({ unit: 'grapheme', maxLength: 300 })

test.each(CONTENT_CODINGS)(
  'a text between others is one member or frame of %s',
  { tags: ['slow'] },
  async (coding) => {
    const property = fc.asyncProperty(edge, anyText, edge, async (before, text, after) => {
      const forms = [compressText(text, coding), await compressInThread(text, coding)]
      for (const form of forms) {
        const bytes = encodeAround(before, form, after)
        expect(decoded(coding, bytes)).toBe(before + text + after)
        expect(form.length).toBe(Buffer.byteLength(text))
      }
    })
    await fc.assert(property, { numRuns: 100 })
  },
)

test.each(CONTENT_CODINGS)('one compressed text of %s serves many responses', (coding) => {
  const form = compressText('a result '.repeat(10_000), coding)
  for (const requestId of ['req_1', 'req_22', '']) {
    const bytes = encodeAround(`{"requestId":"${requestId}","result":"`, form, '"}')
    expect(JSON.parse(decoded(coding, bytes))).toMatchObject({ requestId })
    expect(bytes.length).toBeLessThan(1_000)
  }
})

test.each(CONTENT_CODINGS)(
  'the longest edges of a text are accepted, longer ones not: %s',
  (coding) => {
    const form = compressText('text', coding)
    const longest = 'x'.repeat(65_535)
    expect(decoded(coding, encodeAround(longest, form, longest))).toBe(`${longest}text${longest}`)
    expect(() => encodeAround(`${longest}x`, form, '')).toThrow('a long edge')
    expect(() => encodeAround('', form, `${longest}x`)).toThrow('a long edge')
  },
)
