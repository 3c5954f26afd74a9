/**
 * The operations of `ctx.scheduler`. They come from an untrusted process; names, IDs and arguments
 * inside are checked by the engine, which can tell the author what is wrong.
 */
import { ValidationError } from '../../value/validation-error.ts'
import { count, sized } from './shapes.ts'

/**
 * `schedule` takes milliseconds from now or microseconds since the Unix epoch, a Function and its
 * arguments, and its reply is the ID of the work. The replies of the others: whether the run was
 * prevented, and the work or null.
 */
export type ScheduleOperation =
  | readonly ['schedule', 'after' | 'at', number, string, unknown]
  | readonly ['cancelScheduled', string]
  | readonly ['getScheduled', string]

/** Decodes an operation on scheduled work; null for another kind. Throws ValidationError. */
export function decodeScheduleOperation(json: readonly unknown[]): ScheduleOperation | null {
  const [type, first, second, third, fourth] = json
  switch (type) {
    case 'schedule':
      sized(json, 5)
      if (first !== 'after' && first !== 'at') throw new ValidationError('a kind of time')
      return [type, first, count(second), text(third), fourth]
    case 'cancelScheduled':
    case 'getScheduled':
      sized(json, 2)
      return [type, text(first)]
    default:
      return null
  }
}

function text(json: unknown): string {
  if (typeof json !== 'string') throw new ValidationError('a text')
  return json
}
