import { expect, test } from 'vitest'
import { compareVersions } from './version.ts'

test.each([
  ['0.5.0', '0.5.0', 'same'],
  ['0.5.0+3614d4d9', '0.5.0', 'same'],
  ['0.5.0+3614d4d9.modified', '0.5.0+0c0ffee0', 'same'],
  ['0.5.1', '0.5.0', 'newer'],
  ['0.10.0', '0.9.9', 'newer'],
  ['1.0.0', '0.99.99', 'newer'],
  ['0.4.99', '0.5.0', 'older'],
  ['0.9.9', '0.10.0', 'older'],
  [null, '0.5.0', 'older'],
  ['', '0.5.0', 'older'],
  ['later', '0.5.0', 'older'],
] as const)('a server %s beside a client %s is %s', (server, own, difference) => {
  expect(compareVersions(server, own)).toBe(difference)
})
