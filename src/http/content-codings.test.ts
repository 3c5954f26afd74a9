import { expect, test } from 'vitest'
import { ACCEPT_ENCODING_CHARACTERS_MAX, preferredCoding } from './content-codings.ts'

test.each<[header: string | null, 'zstd' | 'gzip' | null]>([
  // Browsers, curl, Node, Bun, Python.
  ['gzip, deflate, br, zstd', 'zstd'],
  ['gzip, deflate, br', 'gzip'],
  ['deflate, gzip, br, zstd', 'zstd'],
  ['gzip, deflate', 'gzip'],
  ['gzip', 'gzip'],
  ['GZIP', 'gzip'],
  ['x-gzip', 'gzip'],
  ['identity', null],
  ['br', null],
  ['', null],
  [null, null],
  // Weights.
  ['gzip;q=1.0, zstd;q=0.5', 'gzip'],
  ['gzip;q=0.5, zstd;q=0.501', 'zstd'],
  ['gzip;q=0.001', 'gzip'],
  ['gzip;q=0', null],
  ['gzip;q=0.000, zstd', 'zstd'],
  ['zstd;Q=0, gzip', 'gzip'],
  ['gzip;q=0.5, identity', null],
  ['gzip;q=0.5, identity;q=0.5', 'gzip'],
  ['gzip, gzip;q=0', null],
  ['gzip;q=0, gzip', null],
  // Wildcards.
  ['*', 'zstd'],
  ['*;q=0', null],
  ['gzip, *;q=0', 'gzip'],
  ['zstd;q=0, *', 'gzip'],
  ['gzip;q=0, zstd;q=0, *', null],
  ['gzip;q=0.2, zstd;q=0, *;q=0.5', null],
  // A response without a coding is sent where nothing is acceptable.
  ['identity;q=0', null],
  ['identity;q=0, br', null],
  ['identity;q=0, gzip;q=0.1', 'gzip'],
  // Empty entries and white space.
  [', ,gzip,,', 'gzip'],
  [' gzip \t; \tq=0.5 \t,zstd ; q=0.1', 'gzip'],
  // Malformed headers.
  ['gzip;q=2', null],
  ['gzip;q=1.001', null],
  ['gzip;q=0.1234', null],
  ['gzip;q=-1', null],
  ['gzip;q=', null],
  ['gzip;q', null],
  ['gzip;level=9', null],
  ['gzip q=1', null],
  ['gzip; zstd', null],
  ['gzip, "zstd"', null],
  ['gzip;q=NaN', null],
  ['gzip, zstd;q=é', null],
])('Accept-Encoding %j is answered with %s', (header, coding) => {
  expect(preferredCoding(header)).toBe(coding)
  // The header of the last request is remembered.
  expect(preferredCoding(header)).toBe(coding)
})

test('a header over the bound is not read', () => {
  const entries = 'a, '.repeat(ACCEPT_ENCODING_CHARACTERS_MAX)
  const longest = `${entries.slice(0, ACCEPT_ENCODING_CHARACTERS_MAX - 5)},gzip`
  expect(longest).toHaveLength(ACCEPT_ENCODING_CHARACTERS_MAX)
  expect(preferredCoding(longest)).toBe('gzip')
  expect(preferredCoding(`${longest} `)).toBeNull()
})
