/**
 * Cron expressions: minute, hour, day of month, month and day of week, in the syntax of crontab(5)
 * without its extensions. A field is `*`, or a list of numbers and ranges; `*` and ranges take a
 * step. Months and days of the week have names, and Sunday is 0 or 7. Where both days are given,
 * either is enough.
 */
import { ValidationError } from '../validation-error.ts'

export interface CronExpression {
  /** The numbers that each field matches, ascending; 0 is Sunday. */
  readonly minutes: readonly number[]
  readonly hours: readonly number[]
  readonly months: readonly number[]
  /** Null for `*`. */
  readonly daysOfMonth: readonly number[] | null
  /** Null for `*`. */
  readonly daysOfWeek: readonly number[] | null
}

interface Field {
  readonly name: string
  readonly least: number
  readonly most: number
  /** Names of the numbers from `least` on. */
  readonly names: readonly string[]
}

/** Characters of an expression. */
const CHARACTERS_MAX = 512
const FIELDS: readonly Field[] = [
  { name: 'minute', least: 0, most: 59, names: [] },
  { name: 'hour', least: 0, most: 23, names: [] },
  { name: 'day of month', least: 1, most: 31, names: [] },
  {
    name: 'month',
    least: 1,
    most: 12,
    names: ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'],
  },
  {
    name: 'day of week',
    least: 0,
    most: 7,
    names: ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'],
  },
]
/** Days of each month of a leap year. */
const DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
const PART = /^(\*|[0-9a-z]+)(?:-([0-9a-z]+))?(?:\/([0-9]+))?$/

/** Throws ValidationError, whose rule continues "expected", also for a date that never comes. */
export function parseCronExpression(text: string): CronExpression {
  const texts = text.trim().toLowerCase().split(/\s+/)
  if (text.length > CHARACTERS_MAX || texts.length !== FIELDS.length) {
    throw new ValidationError(`five fields: ${FIELDS.map(({ name }) => name).join(', ')}`)
  }
  const [minutes, hours, daysOfMonth, months, daysOfWeek] = FIELDS.map((field, i) =>
    parseNumbers(field, texts[i]!),
  ) as [number[], number[], number[], number[], number[]]
  const isAnyDate = texts[2] === '*' || texts[4] !== '*'
  if (!isAnyDate && !months.some((month) => daysOfMonth[0]! <= DAYS[month - 1]!)) {
    throw new ValidationError('a day of month that one of the months has')
  }
  return {
    minutes,
    hours,
    months,
    daysOfMonth: texts[2] === '*' ? null : daysOfMonth,
    // Sunday has two numbers.
    daysOfWeek: texts[4] === '*' ? null : sorted(daysOfWeek.map((day) => day % 7)),
  }
}

/** Returns the expression in numbers alone: `*` and lists. */
export function numericExpression(expression: CronExpression): string {
  const { minutes, hours, daysOfMonth, months, daysOfWeek } = expression
  const days = [daysOfMonth?.join() ?? '*', months.join(), daysOfWeek?.join() ?? '*']
  return [minutes.join(), hours.join(), ...days].join(' ')
}

function parseNumbers(field: Field, text: string): number[] {
  const found: number[] = []
  for (const part of text.split(',')) {
    const [, first, last, step] = PART.exec(part) ?? []
    const isEvery = first === '*'
    // A step without a range, such as 5/15, means different things to different programs.
    const isRange = last !== undefined || isEvery
    if (first === undefined || (isEvery && last !== undefined) || (step && !isRange)) {
      throw new ValidationError(`${oneOf(field)} such as *, */5, ${sampleOf(field)}`)
    }
    const from = isEvery ? field.least : parseNumber(field, first)
    const to = isEvery ? field.most : last === undefined ? from : parseEnd(field, last)
    if (to < from) throw new ValidationError(`a range of ${field.name} that ascends`)
    const by = step === undefined ? 1 : Number(step)
    if (by < 1 || by > field.most) {
      throw new ValidationError(`a step of ${field.name} from 1 to ${field.most}`)
    }
    for (let number = from; number <= to; number += by) found.push(number)
  }
  return sorted(found)
}

function sampleOf({ least, names }: Field): string {
  return names.length === 0 ? `${least} or ${least}-${least + 4}` : `${names[1]} or 1-5`
}

function oneOf({ name }: Field): string {
  return name === 'hour' ? 'an hour' : `a ${name}`
}

function parseNumber(field: Field, text: string): number {
  const { least, most, names } = field
  const named = names.indexOf(text)
  if (named !== -1) return least + named
  const number = /^[0-9]{1,2}$/.test(text) ? Number(text) : -1
  if (number >= least && number <= most) return number
  const orName = names.length > 0 ? ', or its name' : ''
  throw new ValidationError(`${oneOf(field)} from ${least} to ${most}${orName}`)
}

/** Returns the end of a range: Sunday is the last day of the week there. */
function parseEnd(field: Field, text: string): number {
  return text === 'sun' ? parseNumber(field, '7') : parseNumber(field, text)
}

function sorted(numbers: readonly number[]): number[] {
  return [...new Set(numbers)].sort((a, b) => a - b)
}
