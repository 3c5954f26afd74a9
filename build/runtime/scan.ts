/**
 * Finds the names of environment variables in the executable of a runtime: names that its machine
 * code passes to getenv, names that its JavaScript reads, and texts with the prefixes of its own.
 */
import { assert } from '../../src/errors/assert.ts'
import {
  DOCUMENTED,
  HARMLESS,
  NEUTRALISED,
  NEUTRALISED_SOMEWHERE,
  NO_VARIABLES,
  REMOVED,
} from './variables.ts'

const KNOWN = new Set([
  ...NEUTRALISED,
  ...NEUTRALISED_SOMEWHERE,
  ...REMOVED,
  ...DOCUMENTED,
  ...HARMLESS.flatMap(({ names }) => names),
  ...NO_VARIABLES,
])
/** Longest names first, because one name may be the beginning of another. */
const BY_LENGTH = [...KNOWN].sort((a, b) => b.length - a.length)
/** Prefixes of the names that the runtime itself defines. */
const PREFIXES = ['BUN_', 'NODE_']
const NAME_LENGTH_MAX = 80
const CONSTANT_LENGTH_MIN = 12
const GETENV_DISTANCE_MAX = 40

/** Returns whether the list classifies `name`. Options of JavaScriptCore are neutralised as one. */
function isKnown(name: string): boolean {
  return KNOWN.has(name) || /^(?:BUN_)?JSC_/.test(name)
}

/** Throws if the runtime has a name that the list does not classify. */
export function requireKnownVariables(executable: Buffer): void {
  const unknown = new Set(
    [...prefixedNames(executable), ...scriptNames(executable), ...getenvNames(executable)].filter(
      (name) => !isKnown(name),
    ),
  )
  assert(
    unknown.size === 0,
    `the runtime reads ${[...unknown].sort().join(', ')}: classify them in ` +
      'build/runtime/variables.ts before you ship it',
  )
}

/** Yields every position of `text`. */
export function* positions(executable: Buffer, text: string): Generator<number> {
  const pattern = Buffer.from(text, 'latin1')
  for (let at = executable.indexOf(pattern); at !== -1; at = executable.indexOf(pattern, at + 1)) {
    yield at
  }
}

/**
 * Yields texts with a prefix. Constants follow one another without a separator, so an unknown name
 * is returned with the text after it.
 */
function* prefixedNames(executable: Buffer): Generator<string> {
  for (const prefix of PREFIXES) {
    for (const at of positions(executable, prefix)) {
      const [text] = /^\w*/.exec(textAt(executable, at))!
      if (isProse(executable, at, text.length)) continue
      // A shorter text may be an operand of machine code.
      const alone = executable[at - 1] === 0 && executable[at + text.length] === 0
      if (!/^[A-Z]+_[A-Z][A-Z0-9]/.test(text) || (!alone && text.length < CONSTANT_LENGTH_MIN))
        continue
      yield nameIn(text)
    }
  }
}

/**
 * Returns whether the name at `at` is a word of a message, an identifier of a script, or the end of
 * another name. Strings of a script count as names of variables.
 */
export function isProse(executable: Buffer, at: number, length: number): boolean {
  const before = executable.toString('latin1', at - 1, at)
  const after = executable.toString('latin1', at + length, at + length + 1)
  return /[_.$`([*#]/.test(before) || (before === ' ' && /[ =:;,.)"'\]\n]/.test(after))
}

/** Returns the known name that begins `text` without `_` after it; otherwise the whole text. */
function nameIn(text: string): string {
  const known = BY_LENGTH.find((name) => text.startsWith(name))
  return known === undefined || text[known.length] === '_' ? text : known
}

function textAt(executable: Buffer, at: number): string {
  return executable.toString('latin1', at, at + NAME_LENGTH_MAX)
}

/** Yields the names that the JavaScript inside the runtime reads. */
function* scriptNames(executable: Buffer): Generator<string> {
  for (const at of positions(executable, 'env.')) {
    const before = executable.toString('latin1', at - 8, at)
    if (/[\w$.]$/.test(before) && !/(?:process|\bBun)\.$/.test(before)) continue
    const name = /^env\.([A-Z_][A-Z0-9_]+|[a-z]+_proxy)(?!\w)/.exec(textAt(executable, at))?.[1]
    if (name !== undefined) yield nameIn(name)
  }
}

/**
 * Returns constants that x64 machine code loads right before it calls getenv. The address of that
 * function follows from the calls after known names. Empty for executables of other machines.
 */
function getenvNames(executable: Buffer): Set<string> {
  const calls = constantCalls(executable)
  const votes = new Map<number, number>()
  for (const { text, target } of calls) {
    if (NEUTRALISED.includes(text)) votes.set(target, (votes.get(target) ?? 0) + 1)
  }
  const [getenv] = [...votes].sort((a, b) => b[1] - a[1])[0] ?? []
  const names = calls.filter(({ target }) => target === getenv).map(({ text }) => text)
  return new Set(names)
}

interface ConstantCall {
  readonly text: string
  readonly target: number
}

/** Finds calls whose first argument is the address of a text: `mov edi, imm32`, `call rel32`. */
function constantCalls(executable: Buffer): ConstantCall[] {
  const segments = loadedSegments(executable)
  const code = segments.find(({ executes }) => executes)
  if (code === undefined) return []
  const found: ConstantCall[] = []
  const end = code.offset + code.size - GETENV_DISTANCE_MAX
  for (let at = executable.indexOf(0xbf, code.offset); at !== -1 && at < end; ) {
    const text = constantAt(executable, segments, executable.readUInt32LE(at + 1))
    if (text !== null) {
      const call = executable.indexOf(0xe8, at + 5)
      if (call !== -1 && call - at < GETENV_DISTANCE_MAX) {
        found.push({ text, target: call + 5 + executable.readInt32LE(call + 1) })
      }
    }
    at = executable.indexOf(0xbf, at + 1)
  }
  return found
}

interface Segment {
  readonly address: number
  readonly offset: number
  readonly size: number
  readonly executes: boolean
}

/** Returns the segments of an x64 ELF executable with a fixed address; otherwise none. */
function loadedSegments(executable: Buffer): Segment[] {
  const isElf = executable.toString('latin1', 0, 5) === '\x7fELF\x02'
  if (!isElf || executable.readUInt16LE(16) !== 2 || executable.readUInt16LE(18) !== 62) return []
  const [table, size, count] = [
    Number(executable.readBigUInt64LE(32)),
    executable.readUInt16LE(54),
    executable.readUInt16LE(56),
  ]
  return Array.from({ length: count }, (_, i) => table + i * size)
    .filter((at) => executable.readUInt32LE(at) === 1)
    .map((at) => ({
      executes: (executable.readUInt32LE(at + 4) & 1) !== 0,
      offset: Number(executable.readBigUInt64LE(at + 8)),
      address: Number(executable.readBigUInt64LE(at + 16)),
      size: Number(executable.readBigUInt64LE(at + 32)),
    }))
}

function constantAt(
  executable: Buffer,
  segments: readonly Segment[],
  address: number,
): string | null {
  const segment = segments.find(
    (each) => address >= each.address && address < each.address + each.size,
  )
  if (segment === undefined || segment.executes) return null
  const at = address - segment.address + segment.offset
  return /^([A-Za-z_]\w*)\0/.exec(textAt(executable, at))?.[1] ?? null
}
