/** Frames and messages of a malicious runner: each is decoded, or rejected as ValidationError. */
import { expect } from 'vitest'
import { fuzz, mutatedBytes, mutatedJson, mutatedText } from '../../../testing/fuzzing/fuzz.ts'
import { VALID_MESSAGES } from '../../../testing/hostile/messages.ts'
import { ValidationError } from '../../value/validation-error.ts'
import { FrameReader, FrameWriter } from './frames.ts'
import { decodeFromRunner } from './messages.ts'

const FRAME_BYTES = 4_096

function allowMalformed(decode: () => void): void {
  try {
    decode()
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
  }
}

fuzz('a message is decoded or rejected', (random) => {
  const message = mutatedJson(random, random.pick(VALID_MESSAGES))
  const text = JSON.stringify(message)
  allowMalformed(() => {
    const { type } = decodeFromRunner(random.chance(2) ? text : mutatedText(random, text))
    if (!VALID_MESSAGES.some(([known]) => known === type)) expect.fail(type)
  })
})

fuzz('a stream is split into frames within the bound, or rejected', (random) => {
  const writer = new FrameWriter()
  for (let i = random.below(4); i >= 0; i--) writer.append('x'.repeat(random.below(600)))
  const bytes = mutatedBytes(random, writer.take())
  const reader = new FrameReader(FRAME_BYTES)
  let seen = 0
  allowMalformed(() => {
    for (let at = 0; at < bytes.length; ) {
      const chunk = Buffer.from(bytes.subarray(at, at + random.below(300) + 1))
      at += chunk.length
      // A frame that is bytes of another one decodes to at most as many characters.
      reader.push(chunk, (text) => {
        seen += text.length
      })
    }
  })
  if (seen > bytes.length) expect.fail(`${seen} characters of ${bytes.length} bytes`)
})
