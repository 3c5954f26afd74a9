/** `cronJobs`: declares calls of Functions at fixed times, which are checked on load. */
import type { CronManifest } from '../value/manifest.ts'
import { parseCronExpression } from '../value/scheduling/cron-expressions.ts'
import {
  CRON_NAME,
  CRONS_MAX,
  INTERVAL_MILLIS_MIN,
  isTimeZone,
  OVERLAPS,
} from '../value/scheduling/crons.ts'
import { durationMillis } from '../value/scheduling/scheduled-work.ts'
import { ValidationError } from '../value/validation-error.ts'
import {
  DefinitionError,
  isPlainObject,
  quotedList,
  rejectUnknownOptions,
} from './definition-errors.ts'
import { referencedFunction } from './function-references.ts'
import { kindOf } from './validators.ts'

const CRONS = Symbol.for('svc.crons')
const OPTIONS = ['schedule', 'timeZone', 'every', 'function', 'arguments', 'overlap']

/** The part of a Cron that the runner reads. The runner encodes the arguments. */
interface CronContent extends Omit<CronManifest, 'arguments'> {
  readonly arguments: unknown
}

export interface CronsDefinition {
  readonly [CRONS]: readonly CronContent[]
}

/** Declares Crons by name. Throws DefinitionError for the first invalid one. */
export function cronJobs(definitions: unknown): CronsDefinition {
  if (!isPlainObject(definitions)) {
    throw new DefinitionError(
      `cronJobs(...) is given ${kindOf(definitions)}`,
      'Pass Crons by name: { digest: { schedule: "0 7 * * *", function: internal.digest.send } }',
    )
  }
  const entries = Object.entries(definitions)
  if (entries.length > CRONS_MAX) {
    const fix = `Declare at most ${CRONS_MAX}`
    throw new DefinitionError(`cronJobs(...) has ${entries.length} Crons`, fix)
  }
  return Object.freeze({ [CRONS]: entries.map(([name, cron]) => contentOf(name, cron)) })
}

function contentOf(name: string, cron: unknown): CronContent {
  const owner = `cronJobs(...) ${name}`
  if (!CRON_NAME.test(name)) {
    throw new DefinitionError(
      `cronJobs(...) has a Cron "${name}"`,
      'Use a letter, then letters, digits, _ and -, at most 64 characters',
    )
  }
  if (!isPlainObject(cron)) {
    throw new DefinitionError(
      `${owner} is ${kindOf(cron)}`,
      'Write { schedule: ..., function: ... }',
    )
  }
  rejectUnknownOptions(cron, OPTIONS, owner)
  const { overlap = 'skip' } = cron
  if (overlap !== 'skip' && overlap !== 'queue') {
    const shown = typeof overlap === 'string' ? `"${overlap}"` : kindOf(overlap)
    throw new DefinitionError(`${owner} overlap is ${shown}`, `Use ${quotedList(OVERLAPS)}`)
  }
  return {
    name,
    ...timesOf(cron, owner),
    function: referencedFunction(cron.function, {
      option: `${owner} function`,
      example: 'internal.digest.send',
    }),
    arguments: cron.arguments ?? {},
    overlap,
  }
}

type Times = Pick<CronManifest, 'schedule' | 'timeZone' | 'everyMillis'>

function timesOf({ schedule, timeZone, every }: Record<string, unknown>, owner: string): Times {
  if ((schedule === undefined) === (every === undefined)) {
    const given = schedule === undefined ? 'neither schedule nor every' : 'schedule and every'
    throw new DefinitionError(
      `${owner} has ${given}`,
      'Write schedule: "0 7 * * mon-fri", or every: { minutes: 10 }',
    )
  }
  if (every !== undefined) return intervalOf(every, timeZone, owner)
  if (typeof schedule !== 'string') {
    const fix = 'Write five fields, such as "0 7 * * mon-fri"'
    throw new DefinitionError(`${owner} schedule is ${kindOf(schedule)}`, fix)
  }
  try {
    parseCronExpression(schedule)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw new DefinitionError(`${owner} schedule is "${schedule}"`, `Write ${error.rule}`)
  }
  const zone = timeZone ?? 'UTC'
  if (typeof zone === 'string' && isTimeZone(zone)) {
    return { schedule, timeZone: zone, everyMillis: null }
  }
  throw new DefinitionError(
    `${owner} timeZone is ${typeof zone === 'string' ? `"${zone}"` : kindOf(zone)}`,
    'Use "UTC" or a zone of the IANA database such as "Europe/Rome"',
  )
}

function intervalOf(every: unknown, timeZone: unknown, owner: string): Times {
  if (timeZone !== undefined) {
    const fix = 'Leave timeZone out: an interval has none'
    throw new DefinitionError(`${owner} has every and timeZone`, fix)
  }
  const millis = durationMillis(every)
  if (millis !== null && millis >= INTERVAL_MILLIS_MIN) {
    return { schedule: null, timeZone: null, everyMillis: millis }
  }
  throw new DefinitionError(
    `${owner} every is not an interval from 1 second to 10 years`,
    'Write an object of units, such as { minutes: 10 }',
  )
}
