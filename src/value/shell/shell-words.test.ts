import { expect, test } from 'vitest'
import { shellQuoted } from './shell-words.ts'

const TEXTS = [
  '',
  'plain',
  '/var/lib/svc/product',
  'with space',
  "it's",
  "''",
  '$HOME `id` $(id)',
  '* ? [a] {a,b} ~ # ! & | ; < > ( )',
  '"quoted" \\ back',
  'two\nlines\ttab',
  'é\u{1f600}',
]

test('a shell reads each quoted text as one word that equals it', () => {
  const words = TEXTS.map(shellQuoted).join(' ')
  const { stdout } = Bun.spawnSync(['/bin/sh', '-c', `printf '%s\\0' ${words}`])
  expect(stdout.toString().split('\0').slice(0, -1)).toEqual(TEXTS)
})

test('a text that the shell leaves as it is has no quotation marks', () => {
  expect(shellQuoted('postgres://a:b@c/d,e=f+g%20')).toBe('postgres://a:b@c/d,e=f+g%20')
})
