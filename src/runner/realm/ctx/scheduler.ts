/** `ctx.scheduler`: calls of Mutations and Actions at a later time. */
import { durationMillis, SCHEDULED_DOCUMENTS } from '../../../value/scheduling/scheduled-work.ts'
import type { Call } from '../calls.ts'
import { encode } from '../encoding.ts'
import { sendRead, sendWriting } from '../operations.ts'
import { nameOf, type Reference } from './function-calls.ts'

const { stringify } = JSON
const { MAX_SAFE_INTEGER } = Number
const MICROS_MAX = BigInt(MAX_SAFE_INTEGER)

export class Scheduler {
  readonly #call: Call

  constructor(call: Call) {
    this.#call = call
  }

  /** Returns the ID of the work. */
  runAfter(delay: unknown, reference: Reference, args: unknown = {}): Promise<unknown> {
    const millis = durationMillis(delay)
    if (millis === null) {
      const rule = 'the delay is an object of milliseconds, seconds, minutes, hours or days'
      throw new TypeError(`ctx.scheduler.runAfter: ${rule}, such as { minutes: 5 }`)
    }
    return this.#schedule('runAfter', `"after",${millis}`, reference, args)
  }

  /** `micros` since the Unix epoch, as `ctx.now()` returns them; a time in the past is due now. */
  runAt(micros: unknown, reference: Reference, args: unknown = {}): Promise<unknown> {
    if (typeof micros !== 'bigint' || micros < 0n || micros > MICROS_MAX) {
      const rule = 'the time is a bigint of microseconds since the Unix epoch'
      throw new TypeError(`ctx.scheduler.runAt: ${rule}, such as ctx.now() + 60_000_000n`)
    }
    return this.#schedule('runAt', `"at",${micros}`, reference, args)
  }

  /** Returns whether that prevented the run. */
  cancel(id: unknown): Promise<unknown> {
    const op = `["cancelScheduled",${idText('cancel', id)}]`
    return sendWriting(this.#checked('cancel'), op, 'ctx.scheduler.cancel')
  }

  get(id: unknown): Promise<unknown> {
    return sendRead(this.#checked('get'), `["getScheduled",${idText('get', id)}]`)
  }

  #schedule(
    name: 'runAfter' | 'runAt',
    time: string,
    reference: Reference,
    args: unknown,
  ): Promise<unknown> {
    const method = `ctx.scheduler.${name}`
    const call = this.#checked(name)
    const callee = nameOf(reference, method)
    const encoded = encode(args, `${method} of ${callee}`)
    return sendWriting(call, `["schedule",${time},${stringify(callee)},${encoded}]`, method)
  }

  #checked(name: string): Call {
    if (this.#call.definition.kind !== 'query') return this.#call
    throw new TypeError(`ctx.scheduler.${name} in a Query: make the Function a mutation`)
  }
}

/** Returns the text of the ID of scheduled work. */
function idText(method: string, id: unknown): string {
  if (typeof id === 'string' && id.startsWith(`${SCHEDULED_DOCUMENTS}_`)) return stringify(id)
  const rule = 'needs the ID of scheduled work, such as "sch_01JZ..."'
  throw new TypeError(`ctx.scheduler.${method} ${rule}`)
}
