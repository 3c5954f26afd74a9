import { expect, test } from 'vitest'
import { explain } from './explanations.ts'

test.each([
  ['Buffer', 'Use a Uint8Array, with TextEncoder, TextDecoder, toBase64() and toHex().'],
  ['process', 'There is no process; read settings with ctx.config.variable("NAME").'],
  ['require', 'Use import; svc bundles it.'],
])('a global of Node is explained with its replacement: %s', (name, fix) => {
  const message = `Cannot find name '${name}'. Do you need to install type definitions for node?`
  expect(explain(message, '')).toEqual({ message: `"${name}" is not available in Functions.`, fix })
})

test('the message about an unknown name stays as the compiler wrote it', () => {
  const message = "Cannot find name 'nothing'."
  expect(explain(message, '')).toEqual({ message, fix: null })
})
