/**
 * The reference of limits, from the docstrings of the constants. A constant with a line
 * `@limit SECTION: WHAT` is a row; its value is the exported one, its unit a word of its name.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { assert } from '../../src/errors/assert.ts'
import { isGenerated, isTest, readSourceFiles } from '../tidy/source-files.ts'
import { code, table } from './markdown.ts'

export interface Limit {
  readonly section: string
  readonly what: string
  /** The value with its unit. */
  readonly value: string
  /** The file that defines it. */
  readonly path: string
}

interface Tag {
  readonly path: string
  readonly constant: string
  readonly section: string
  readonly what: string
}

const DOCSTRING = /\/\*\*((?:(?!\*\/)[\s\S])*?@limit (?:(?!\*\/)[\s\S])*)\*\/\n([^\n]*)/g
const CONSTANT = /^export const ([A-Z][A-Z0-9_]*)\b/

/** Fails for a tag that is not of the form above, or whose constant is not exported. */
export function parseLimits(path: string, text: string): Tag[] {
  return [...text.matchAll(DOCSTRING)].map(([, docstring = '', declaration = '']) => {
    const words = docstring.replace(/\n\s*\*/g, ' ').replace(/\s+/g, ' ')
    const [, section, what] = /@limit ([^:@]+): ([^@]+)$/.exec(words.trim()) ?? []
    const constant = CONSTANT.exec(declaration)?.[1]
    const isRow = section !== undefined && what !== undefined && constant !== undefined
    assert(isRow, `${path}: @limit needs "SECTION: WHAT" and an exported constant`)
    return { path, constant, section, what }
  })
}

/** Sections are sorted by name; within one, limits stand as in the files, sorted by path. */
export async function readLimits(root: string): Promise<Limit[]> {
  const tags = readSourceFiles(root)
    .filter(({ path }) => path.startsWith('src/') && !isTest(path) && !isGenerated(path))
    .flatMap(({ path }) => parseLimits(path, readFileSync(join(root, path), 'utf8')))
  const limits = tags.map(async ({ path, constant, section, what }) => {
    const module: Record<string, unknown> = await import(join(root, path))
    return { section, what, value: limitText(constant, module[constant]), path }
  })
  const rows = await Promise.all(limits)
  return rows.toSorted((a, b) => (a.section < b.section ? -1 : a.section > b.section ? 1 : 0))
}

const BYTE_UNITS = ['bytes', 'KiB', 'MiB', 'GiB']
/** Units of time for people, longest first, in microseconds. */
const TIME_UNITS: readonly (readonly [number, string])[] = [
  [86_400_000_000, 'd'],
  [3_600_000_000, 'h'],
  [60_000_000, 'min'],
  [1_000_000, 's'],
  [1_000, 'ms'],
]
const MICROS: Readonly<Record<string, number>> = {
  MICROS: 1,
  MILLIS: 1_000,
  MS: 1_000,
  SECONDS: 1_000_000,
}

/** Formats the value for people; the unit comes from the name of the constant. */
export function limitText(constant: string, value: unknown): string {
  if (typeof value === 'object' && value !== null) {
    const { perSecond, burst } = value as { readonly perSecond: number; readonly burst: number }
    assert(typeof perSecond === 'number' && typeof burst === 'number', `${constant}: what is it?`)
    return `${count(perSecond)} per second, ${count(burst)} at once`
  }
  const number = Number(value)
  assert(Number.isSafeInteger(number) && number > 0, `${constant} is not a positive integer`)
  const words = constant.split('_')
  if (words.includes('BYTES')) {
    return words.includes('SECOND') ? `${bytes(number)} per second` : bytes(number)
  }
  if (words.includes('CHARACTERS')) return `${count(number)} characters`
  const unit = words.find((word) => MICROS[word] !== undefined)
  return unit === undefined ? count(number) : duration(number * MICROS[unit]!)
}

function count(value: number): string {
  return value.toLocaleString('en-US')
}

function bytes(value: number): string {
  const power = [3, 2, 1].find((n) => value % 1024 ** n === 0) ?? 0
  return `${count(value / 1024 ** power)} ${BYTE_UNITS[power]}`
}

/** Formats a time in the longest unit that leaves no fraction, but in days only from two on. */
function duration(micros: number): string {
  const unit = TIME_UNITS.find(
    ([size, name]) => micros % size === 0 && (name !== 'd' || micros > size),
  )
  assert(unit !== undefined, `${micros} microseconds are no round time`)
  return `${count(micros / unit[0])} ${unit[1]}`
}

export async function limitsDocument(root: string): Promise<string> {
  const sections = Map.groupBy(await readLimits(root), ({ section }) => section)
  const parts = [...sections].map(([section, limits]) => {
    const rows = limits.map(({ what, value, path }) => [what, value, code(path)])
    return `## ${section}\n\n${table(['What', 'Limit', 'Defined in'], rows)}`
  })
  return `${HEAD}\n${parts.join('\n')}`
}

const HEAD = `# Limits of calls, Actions, Releases, identity and requests

A call that exceeds a limit fails with \`LIMIT_EXCEEDED\`, \`RATE_LIMITED\`, \`BUSY\` or
\`DEADLINE_EXCEEDED\`; the log entry with its request ID names the limit. A management request
fails with \`PLATFORM_BODY_TOO_LARGE\`, \`PLATFORM_RATE_LIMITED\` or \`PRODUCT_INVALID\`. The
[error reference](errors.md) says what to do. A rate is a token bucket: so many per second, and so
many at once after a pause. The memory of unfinished bodies and unsent responses is a
[setting](settings.md); one address may hold a quarter of it, one key or session half. Connections
and TLS handshakes have no rate in the server: [proxies](proxies.md#connections-of-strangers) has
what they cost, and rules for the firewall. The last column names the file of the source that
defines the limit.
`
