import { expect, test } from 'vitest'
import {
  parseAssignments,
  parseEnvironmentFile,
  type ServiceVariables,
} from './environment-files.ts'

function revealed(variables: ServiceVariables): Record<string, string> {
  return Object.fromEntries(
    Object.entries(variables).map(([name, secret]) => [name, secret.reveal()]),
  )
}

test.each([
  ['A=b', { A: 'b' }],
  ['  A = b  ', { A: 'b' }],
  ['A=', { A: '' }],
  ['A=b c=d', { A: 'b c=d' }],
  ['A="b c"', { A: 'b c' }],
  ["A='b \"c\\d'", { A: 'b "c\\d' }],
  ['A="b\\"c\\$d\\e"', { A: 'b"c$d\\e' }],
  ['A=b\\ c', { A: 'b c' }],
  ['A=b\\\nc', { A: 'bc' }],
  ['A="b"\'c\'d', { A: 'bcd' }],
  ['# A=b\n; B=c\n\nC=d#e\r\n', { C: 'd#e' }],
  ['no assignment\n1A=b\nA-B=c\n=d\nB=c', { B: 'c' }],
  ['A=b\nA=c', { A: 'c' }],
])('the environment file %j is read as systemd reads it', (text, expected) => {
  expect(revealed(parseEnvironmentFile(text))).toEqual(expected)
})

test.each([
  ['', {}],
  ['A=b C=d', { A: 'b', C: 'd' }],
  ['"A=b c" D=e', { A: 'b c', D: 'e' }],
  ["'A=b \"c' D=e\\ f", { A: 'b "c', D: 'e f' }],
  ['word A=b', { A: 'b' }],
])('the assignments %j are read as systemctl shows them', (text, expected) => {
  expect(revealed(parseAssignments(text))).toEqual(expected)
})

test('no value is printed', () => {
  expect(JSON.stringify(parseEnvironmentFile('A=password'))).toBe('{"A":"[redacted]"}')
})
