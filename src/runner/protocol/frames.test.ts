import { describe, expect, test } from 'vitest'
import { ValidationError } from '../../value/validation-error.ts'
import { FrameReader, FrameWriter } from './frames.ts'
import { FRAME_BYTES_MAX } from './messages.ts'

const texts = ['', '[]', 'é'.repeat(50), '\u{1f600}x', 'a'.repeat(200_000), '["end"]']

function bytesOf(frames: readonly string[]): Buffer {
  const writer = new FrameWriter()
  for (const text of frames) writer.append(text)
  return Buffer.from(writer.take())
}

describe('frames', () => {
  test.each([1, 2, 3, 5, 1_000, 70_000, 1e9])(
    'frames are read whole from chunks of %d bytes',
    (size) => {
      const bytes = bytesOf(texts)
      const reader = new FrameReader()
      const seen: string[] = []
      for (let at = 0; at < bytes.length; at += size) {
        // The owner of a chunk may reuse it, so the reader must not keep it.
        const chunk = Buffer.from(bytes.subarray(at, at + size))
        reader.push(chunk, (text) => seen.push(text))
        chunk.fill(0)
      }
      expect(seen).toEqual(texts)
    },
  )

  test('frames whose header exceeds the bound are rejected before they are gathered', () => {
    const header = Buffer.alloc(4)
    header.writeUInt32LE(FRAME_BYTES_MAX + 1)
    expect(() => new FrameReader().push(header, () => {})).toThrow(ValidationError)
    const reader = new FrameReader()
    reader.push(header.subarray(0, 3), () => {})
    expect(() => reader.push(header.subarray(3), () => {})).toThrow(ValidationError)
  })

  test('frames that were taken from a writer are not returned again', () => {
    const writer = new FrameWriter()
    writer.append('["one"]')
    expect(writer.take().length).toBe(11)
    expect(writer.length).toBe(0)
    writer.append('["two"]')
    expect(writer.take().toString('utf8', 4)).toBe('["two"]')
  })
})
