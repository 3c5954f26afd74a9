/**
 * Changes names in the executable of a runtime, so that it reads variables that no environment can
 * contain: `=` ends the name of a variable, so no name begins with it.
 */
import { assert } from '../../src/errors/assert.ts'
import { isProse, positions } from './scan.ts'
import { NEUTRALISED, NEUTRALISED_SOMEWHERE } from './variables.ts'

const EQUALS = 0x3d
/** Longest names first, because one name may be the beginning of another. */
const NAMES = [...NEUTRALISED, ...NEUTRALISED_SOMEWHERE].sort((a, b) => b.length - a.length)
const BEGINNING_LENGTH = 4
const BEGINNINGS = new Set(NAMES.map((name) => name.slice(0, BEGINNING_LENGTH)))
const NAME_LENGTH_MAX = NAMES[0]!.length

/** Changes the bytes in place. Throws if the runtime lacks a name that every target has. */
export function neutralise(executable: Buffer): void {
  const found = new Set<string>()
  for (const beginning of BEGINNINGS) {
    for (const at of positions(executable, beginning)) {
      const text = executable.toString('latin1', at, at + NAME_LENGTH_MAX)
      const name = NAMES.find((each) => text.startsWith(each))
      if (name !== undefined && neutraliseAt(executable, at, name)) found.add(name)
    }
  }
  const missing = NEUTRALISED.filter((name) => !found.has(name))
  assert(
    missing.length === 0,
    `the runtime has no ${missing.join(', ')}: find out what it reads instead before you ship it`,
  )
  for (const at of positions(executable, '\0JSC_')) executable[at + 1] = EQUALS
  renamePrefix(executable)
}

/** Returns whether the text at `at` was a read of the variable or its name as a constant. */
function neutraliseAt(executable: Buffer, at: number, name: string): boolean {
  const read = /(?:process|Bun)\.env\.$/.exec(executable.toString('latin1', at - 12, at))
  if (read !== null) {
    const end = at + name.length
    const after = executable.toString('latin1', end, end + 3)
    // A read in JavaScript becomes undefined; assignments and longer names stay.
    if (/^\w|^ = /.test(after)) return false
    executable.write('(void 0)'.padEnd(read[0].length + name.length), at - read[0].length, 'latin1')
    return true
  }
  if (isProse(executable, at, name.length)) return false
  executable[at] = EQUALS
  return true
}

/**
 * Changes the prefix of the variables that set options of JavaScriptCore. Throws if it cannot find
 * the code that compares names with that prefix.
 */
export function renamePrefix(executable: Buffer): void {
  const text = executable.toString('latin1')
  const found = [...text.matchAll(COMPARISONS_X64), ...text.matchAll(COMPARISONS_ARM64)]
  assert(
    found.length === 1,
    `the runtime compares names with ${PREFIX} in ${found.length} places: find out how it reads ` +
      'options of JavaScriptCore before you ship it',
  )
  const [{ index, groups = {} }] = found as [RegExpExecArray]
  const { x64, arm64 } = groups
  if (x64 !== undefined) executable[index + x64.length - 1] = EQUALS
  if (arm64 !== undefined) {
    executable.writeUInt32LE(withOperand(executable.readUInt32LE(index), EQUALS), index)
  }
}

/**
 * The prefix of the options, one of which replaces functions of the program. Compilers compare it
 * byte by byte, so it is not a constant, but the operands of eight comparisons before branches.
 */
const PREFIX = 'BUN_JSC_'
const CODES = [...Buffer.from(PREFIX)]

/** `cmp byte ptr [register + offset], code` and `jne`. */
const COMPARISONS_X64 = new RegExp(
  CODES.map((code, offset) => {
    const address =
      offset === 0
        ? String.raw`(?:[\x38-\x3b\x3e\x3f]|\x3c\x24|\x7d\0)`
        : String.raw`(?:[\x78-\x7b\x7d-\x7f]|\x7c\x24)${byte(offset)}`
    const comparison = String.raw`\x41?\x80${address}${byte(code)}`
    return offset === 0 ? `(?<x64>${comparison})` : comparison
  }).join(String.raw`(?:\x75[^]|\x0f\x85[^]{4})`),
  'g',
)

/** `cmp register, #code`, each after a load and before a branch of four bytes. */
const COMPARISONS_ARM64 = new RegExp(
  CODES.map((code, i) => {
    const words = Array.from({ length: 32 }, (_, register) => withOperand(register << 5, code))
    const comparison = words.map((word) => {
      const bytes = [word, word >>> 8, word >>> 16, word >>> 24]
      return bytes.map((each) => byte(each & 255)).join('')
    })
    return i === 0 ? `(?<arm64>${comparison.join('|')})` : `(?:${comparison.join('|')})`
  }).join('[^]{8}'),
  'g',
)

/** Returns the word of `cmp register, #code` for the register of `word`. */
function withOperand(word: number, code: number): number {
  const registers = word & (31 << 5)
  return (0x7100001f | registers | (code << 10)) >>> 0
}

function byte(value: number): string {
  return `\\x${value.toString(16).padStart(2, '0')}`
}
