/** Arguments of the modes that take some. */
import { isShell } from '../../shells/completion.ts'
import { parseRestoreArguments, RESTORE_OPTIONS } from '../restore/arguments.ts'
import { parseSetupArguments, SETUP_OPTIONS } from '../setup/arguments.ts'
import { type ModeOption, parseOptions } from './options.ts'

/** Argument of `doctor` and `upgrade`. */
export const JSON_OUTPUT = '--json'
/** Argument of `verify-storage`. */
export const REPAIR = '--repair'
/** Argument of `upgrade`. It is required, since nothing else is offered. */
export const CHECK = '--check'
/** Argument of `serve`, followed by the sequence after which changes may be missing. */
export const ACCEPT_LOSS = '--accept-loss'

const SEQUENCE = /^(?:0|[1-9][0-9]{0,15})$/

const JSON_ROW: ModeOption = {
  name: JSON_OUTPUT,
  value: null,
  description: 'Print one JSON document on standard output',
}

/** The options by mode; a mode without a row takes none. */
export const MODE_OPTIONS: Readonly<Record<string, readonly ModeOption[]>> = {
  doctor: [JSON_ROW],
  restore: RESTORE_OPTIONS,
  serve: [
    {
      name: ACCEPT_LOSS,
      value: 'SEQUENCE',
      description: 'Serve although changes after this sequence may be missing',
    },
  ],
  setup: SETUP_OPTIONS,
  upgrade: [
    {
      name: CHECK,
      value: null,
      required: true,
      description: 'Say what this version would change, and change nothing',
    },
    JSON_ROW,
  ],
  'verify-storage': [
    { name: REPAIR, value: null, description: 'Set damaged files aside, and record missing ones' },
  ],
}

/** Returns whether the mode accepts these arguments. */
export function takesArguments(mode: string, args: readonly string[]): boolean {
  if (mode === 'completion') return args.length === 1 && isShell(args[0])
  if (mode === 'restore') return parseRestoreArguments(args) !== null
  if (mode === 'setup') return parseSetupArguments(args) !== null
  if (parseOptions(args, MODE_OPTIONS[mode] ?? []) === null) return false
  return mode !== 'serve' || args.length === 0 || acceptedLoss(args) !== null
}

/** Parses the sequence of `--accept-loss`; null if it is missing or invalid. */
export function acceptedLoss([name, sequence = '']: readonly string[]): number | null {
  if (name !== ACCEPT_LOSS || !SEQUENCE.test(sequence)) return null
  const value = Number(sequence)
  return Number.isSafeInteger(value) ? value : null
}
