/** Command lines of `svc` and `svc-server` in documents, read by the parsers of the programs. */
import { parseLine } from '../../src/client/command-line/arguments.ts'
import { COMMANDS } from '../../src/client/main.ts'
import { takesArguments } from '../../src/server/command-line/arguments.ts'
import { MODES } from '../../src/server/usage.ts'

/** Returns why a program rejects the words; null if it accepts them, and for other programs. */
export function reasonAgainst(program: string, words: readonly string[]): string | null {
  if (program === 'svc-server') return isMode(words) ? null : 'no such mode'
  if (program !== 'svc') return null
  try {
    parseLine(words, COMMANDS)
    return null
  } catch (error) {
    return (error as { detail?: string }).detail ?? String(error)
  }
}

/** Returns whether a mode of the server takes the words. A word in capitals stands for a number. */
export function isMode([mode = '', ...rest]: readonly string[]): boolean {
  if (mode === '--help') return rest.length === 0
  const args = rest.map((word) => (/^[A-Z]+$/.test(word) ? '1' : word))
  // The name of a mode alone is not a command line.
  const isWhole = args.length === 0 || takesArguments(mode, args)
  return MODES.some(([name]) => name === mode) && isWhole
}
