/** The digest in plain JavaScript, compared with that of the runtime. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { textDigest } from './text-digest.ts'

const expected = (text: string) => createHash('sha256').update(text).digest('hex')

test.each(['', 'a', 'é', '€', '😀', '\0', 'a\u07ff\u0800\uffff'])('%j has its SHA-256', (text) => {
  expect(textDigest(text)).toBe(expected(text))
})

test('texts around the length of a block have their SHA-256', () => {
  for (let length = 50; length < 200; length++) {
    const text = 'x'.repeat(length)
    expect(textDigest(text), String(length)).toBe(expected(text))
  }
})

test('a lone surrogate counts as the replacement character', () => {
  expect(textDigest('a\ud800b')).toBe(expected('a\ufffdb'))
})
