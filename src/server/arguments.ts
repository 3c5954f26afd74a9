/** Arguments of the modes that take some. */
import { parseRestoreArguments } from './restore/arguments.ts'

/** Argument of `doctor` and `upgrade`. */
export const JSON_OUTPUT = '--json'
/** Argument of `verify-storage`. */
export const REPAIR = '--repair'
/** Argument of `upgrade`. It is required, since nothing else is offered. */
export const CHECK = '--check'
/** Argument of `serve`, followed by the sequence after which changes may be missing. */
export const ACCEPT_LOSS = '--accept-loss'

const SEQUENCE = /^(?:0|[1-9][0-9]{0,15})$/

/** Returns whether the mode accepts these arguments. */
export function takesArguments(mode: string, args: readonly string[]): boolean {
  if (mode === 'restore') return parseRestoreArguments(args) !== null
  if (mode === 'upgrade') {
    const known = args.every((arg) => arg === CHECK || arg === JSON_OUTPUT)
    return known && args.includes(CHECK) && new Set(args).size === args.length
  }
  if (args.length === 0) return true
  if (mode === 'doctor') return args.length === 1 && args[0] === JSON_OUTPUT
  if (mode === 'verify-storage') return args.length === 1 && args[0] === REPAIR
  return mode === 'serve' && args.length === 2 && acceptedLoss(args) !== null
}

/** Parses the sequence of `--accept-loss`; null if it is missing or invalid. */
export function acceptedLoss([name, sequence = '']: readonly string[]): number | null {
  if (name !== ACCEPT_LOSS || !SEQUENCE.test(sequence)) return null
  const value = Number(sequence)
  return Number.isSafeInteger(value) ? value : null
}
