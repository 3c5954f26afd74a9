/** Ranges and conditions of downloads, in every form that clients may send. */
import { expect, test } from 'vitest'
import { allowsRange, isNotModified, requestedRange } from './ranges.ts'

test.each<[string | null, number, [number, number] | 'unsatisfiable' | null]>([
  [null, 10, null],
  ['', 10, null],
  ['bytes=0-0', 10, [0, 1]],
  ['bytes=0-9', 10, [0, 10]],
  ['bytes=3-', 10, [3, 10]],
  ['bytes=9-9', 10, [9, 10]],
  ['bytes=9-999999999999999999999', 10, [9, 10]],
  ['bytes=-1', 10, [9, 10]],
  ['bytes=-10', 10, [0, 10]],
  ['bytes=-11', 10, [0, 10]],
  ['bytes=-99999999999999999999999', 10, [0, 10]],
  ['BYTES=1-2', 10, [1, 3]],
  ['bytes= 1-2', 10, [1, 3]],
  ['bytes=1-2 ', 10, [1, 3]],
  ['bytes=00-01', 10, [0, 2]],
  ['bytes=10-', 10, 'unsatisfiable'],
  ['bytes=10-10', 10, 'unsatisfiable'],
  ['bytes=99999999999999999999999-', 10, 'unsatisfiable'],
  ['bytes=-0', 10, 'unsatisfiable'],
  ['bytes=0-', 0, 'unsatisfiable'],
  ['bytes=-1', 0, 'unsatisfiable'],
  ['bytes=5-4', 10, null],
  ['bytes=15-14', 10, null],
  ['bytes=', 10, null],
  ['bytes=-', 10, null],
  ['bytes=--1', 10, null],
  ['bytes=1', 10, null],
  ['bytes=a-b', 10, null],
  ['bytes=1-b', 10, null],
  ['bytes=0x1-2', 10, null],
  ['bytes=1e1-', 10, null],
  ['bytes=1.0-2', 10, null],
  ['bytes=+1-2', 10, null],
  ['bytes=1 -2', 10, null],
  ['bytes =1-2', 10, null],
  ['bytes:1-2', 10, null],
  ['bytes 1-2', 10, null],
  ['bytes=1-2,', 10, null],
  ['bytes=1-2,4-5', 10, null],
  ['bytes=,1-2', 10, null],
  ['bytes=1-2-3', 10, null],
  ['bytes=１-２', 10, null],
  ['items=1-2', 10, null],
  ['none', 10, null],
])('%j of %d bytes', (header, size, expected) => {
  const range = requestedRange(header, size)
  const found = range === null || range === 'unsatisfiable' ? range : [range.start, range.end]
  expect(found).toEqual(expected)
})

test.each<[string | null, boolean]>([
  [null, false],
  ['', false],
  ['"a"', true],
  ['W/"a"', true],
  ['"b", "a"', true],
  ['"b","a"', true],
  ['*', true],
  [' * ', true],
  ['"b"', false],
  ['a', false],
  ['"a', false],
  ['"a,b"', false],
])('If-None-Match: %j', (header, expected) => {
  expect(isNotModified(header, '"a"')).toBe(expected)
})

test.each<[string | null, boolean]>([
  [null, true],
  ['"a"', true],
  ['W/"a"', false],
  ['"b"', false],
  ['*', false],
  ['"b", "a"', false],
  ['Mon, 23 Nov 2026 06:45:33 GMT', false],
])('If-Range: %j', (header, expected) => {
  expect(allowsRange(header, '"a"')).toBe(expected)
})
