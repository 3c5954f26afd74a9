/** The arguments of the modes that have any. */

/** Argument of `verify-storage`. */
export const REPAIR = '--repair'
/** Argument of `serve`: the sequence after which changes may be missing follows it. */
export const ACCEPT_LOSS = '--accept-loss'

const SEQUENCE = /^(?:0|[1-9][0-9]{0,15})$/

/** Whether the mode has these arguments. */
export function takesArguments(mode: string, args: readonly string[]): boolean {
  if (args.length === 0) return true
  if (mode === 'verify-storage') return args.length === 1 && args[0] === REPAIR
  return mode === 'serve' && args.length === 2 && acceptedLoss(args) !== null
}

/** Returns the sequence of `--accept-loss`; null without one. */
export function acceptedLoss([name, sequence = '']: readonly string[]): number | null {
  if (name !== ACCEPT_LOSS || !SEQUENCE.test(sequence)) return null
  const value = Number(sequence)
  return Number.isSafeInteger(value) ? value : null
}
