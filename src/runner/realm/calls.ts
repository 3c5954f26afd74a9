/**
 * The calls that are in flight in a realm: each has its own `ctx`, clock, randomness and log. One
 * frame of the server is worked at a time, with all that follows from it. That is mostly the call
 * of the frame; where calls share a promise in module scope, others go on in its frame as well.
 */
import type { FunctionalIdentity } from '../../value/identities.ts'
import type { TransientMap } from '../../value/memory/transient-map.ts'
import type { ViolatedIndex } from '../messages.ts'
import type { Bridge } from './bridge.ts'
import type { Codec } from './codec.ts'
import type { Handed } from './documents.ts'
import type { LogSink } from './logging.ts'
import type { RandomStream } from './random.ts'
import type { makeTelling } from './telling.ts'
import type { DefinedFunction } from './workspace.ts'

export interface Call extends LogSink {
  readonly id: number
  readonly definition: DefinedFunction
  readonly nowMicros: string
  readonly seed: string
  stream: RandomStream | null
  usedClock: boolean
  usedRandom: boolean
  /** Null for nobody. */
  readonly identity: FunctionalIdentity | null
  usedIdentity: boolean
  /** Of the CPU, up to its last segment. */
  spentMicros: number
  finished: boolean
  /** The call whose CPU time this one uses: itself, or the one that it is part of. */
  readonly root: Call | null
  /** Operations that were sent for a reply. */
  asked: number
  /** Operations without a reply. */
  open: number
  /** Those of them that the Function must wait for. */
  pending: number
  /** Of an Action. */
  readonly timers: Map<number, Timer>
  /** Those of them that are of AbortSignal.timeout. */
  timeouts: number
  /** When the server wakes it, in milliseconds since the epoch: the next time stands last. */
  readonly wakes: number[]
  readonly handed: Handed
  /** Writes whose promise nobody looked at, with the place that made them. */
  readonly unwatched: Map<object, Error | null>
  /** Promises whose rejection nobody looked at, with their reports; null while there was none. */
  rejected: Map<object, string> | null
  /** Whether it continues before replies arrive and records no call sites (speculation). */
  readonly isSpeculative: boolean
  /** What it was given ahead and is still as the server would answer, by ID. */
  readonly given: Map<string, object>
  /** Documents that it inserted; null where others may have, in the same transaction. */
  inserts: number | null
  /** Operations that the server does not know of yet, with commas between them. */
  told: string
  /** Operations that were told since one was sent for a reply. */
  toldInRow: number
  /** What operations that were told come to, until the code has heard of it. */
  readonly answers: ToldAnswer[]
  /** Whether its handler is done. */
  isDone: boolean
}

/** Heard one at a time, as replies are, so that the code takes the same turns as in step. */
interface ToldAnswer {
  /** How many were sent for a reply before it: the code hears of those first. */
  readonly behind: number
  readonly resolve: (result: unknown) => void
  readonly result: unknown
}

export interface Timer {
  /** Milliseconds since the epoch. */
  dueAt: number
  /** Null for one that runs once. */
  readonly every: number | null
  readonly run: () => void
}

/** A reply that a call waits for. */
export interface Waiting {
  readonly call: Call
  /** Whether the Function must wait for it. */
  readonly isOwed: boolean
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
  /** Made where the operation was, for its stack; null where no place is noted. */
  readonly error: Error | null
}

export interface Calls {
  readonly active: TransientMap<number, Call>
  readonly waiting: TransientMap<number, Waiting>
  /** Handlers that are done; they end with the frame, when whatever they left running has run. */
  readonly done: (() => void)[]
  /** The call whose frame is being worked. */
  current: Call | null
  /** Others whose code was seen to run in this frame: they asked, told or ended. */
  readonly guests: Call[]
  /** The code of a call runs. */
  see(call: Call): void
  /** The call whose code runs; null while the code loads. */
  running(): Call | null
}

export function makeCalls(Table: typeof TransientMap, bridge: Bridge): Calls {
  const calls: Calls = {
    active: new Table(),
    waiting: new Table(),
    done: [],
    current: null,
    guests: [],
    // Not by a method: the code may have changed those, which nothing has put back yet.
    see(call) {
      if (call !== calls.current) calls.guests[calls.guests.length] = call
    },
    // What waits since the code loaded follows from no call.
    running: () => (bridge.entered() as Call | undefined) ?? calls.current,
  }
  return calls
}

/** Everything that ends a call; each sends one frame and forgets the call. */
export function makeEndings(
  bridge: Bridge,
  calls: Calls,
  telling: ReturnType<typeof makeTelling>,
  resultBytesMax: number,
) {
  const { stringify } = JSON

  function usage(call: Call): string {
    const ofFrame = call === calls.current
    const micros = ofFrame ? bridge.spentMicros() : (call.root ?? call).spentMicros
    const { usedClock, usedRandom, usedIdentity, lines } = call
    const used = `${usedClock},${usedRandom},${usedIdentity},${micros}`
    return `[${used},[${lines}]${telling.rest(call)}]`
  }

  function drop(call: Call): void {
    call.finished = true
    calls.active.delete(call.id)
    if (call.open === 0) return
    for (const [id, one] of calls.waiting) if (one.call === call) calls.waiting.delete(id)
  }

  function end(call: Call, type: string, content: string): void {
    if (call.finished) return
    drop(call)
    bridge.emit(`["${type}",${call.id},${content}${usage(call)}]`)
  }

  return {
    returned(call: Call, text: string): void {
      const fits = text.length * 3 <= resultBytesMax || bridge.utf8Length(text) <= resultBytesMax
      if (fits) end(call, 'returned', `${text},`)
      else end(call, 'limit', '"result",')
    },
    failed: (call: Call, code: string) => end(call, 'failed', `${stringify(code)},`),
    threw: (call: Call, report: string) => end(call, 'threw', `${report},`),
    cpu: (call: Call) => end(call, 'limit', '"cpu",'),
    isVoid: (call: Call) => end(call, 'void', ''),
    drop,
  }
}

/** A promise that tells when somebody looks at it: `await` calls `then` of another class. */
export function makeWrite(owners: WeakMap<object, Call>) {
  return class Write extends Promise<unknown> {
    static override get [Symbol.species]() {
      return Promise
    }
    // biome-ignore lint/suspicious/noThenProperty: it is a promise, and this is what watches it
    override then<A, B>(
      fulfilled?: ((value: unknown) => A | PromiseLike<A>) | null,
      rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
    ): Promise<A | B> {
      owners.get(this)?.unwatched.delete(this)
      return super.then(fulfilled, rejected)
    }
  }
}

/** Sends operations; what it answers are the promises of their replies. */
export function makeSending(
  bridge: Bridge,
  calls: Calls,
  telling: ReturnType<typeof makeTelling>,
  { Write, owners }: { Write: ReturnType<typeof makeWrite>; owners: WeakMap<object, Call> },
) {
  type Kind = typeof Promise<unknown>
  let last = 0

  function send(
    call: Call,
    op: string,
    error: Error | null,
    { kind = Promise, isOwed = true }: { kind?: Kind; isOwed?: boolean },
  ): Promise<unknown> {
    if (call.finished) throw new Error('ctx was used after the Function had ended')
    telling.flush(call)
    calls.see(call)
    const id = ++last
    bridge.emit(`["operation",${call.id},${id},${op}]`)
    call.toldInRow = 0
    call.asked += 1
    call.open += 1
    if (isOwed) call.pending += 1
    return new kind((resolve, reject) => {
      calls.waiting.set(id, { call, isOwed, resolve, reject, error })
    })
  }

  function watched(call: Call, promise: Promise<unknown>, error: Error | null): Promise<unknown> {
    owners.set(promise, call)
    call.unwatched.set(promise, error)
    return promise
  }

  return {
    /** Places are noted in step, unless told: an error costs a third of a small call. */
    read: (call: Call, op: string, notesPlace = !call.isSpeculative) =>
      send(call, op, notesPlace ? new Error() : null, {}),
    leave: (call: Call, op: string) => send(call, op, new Error(), { isOwed: false }),
    write(
      call: Call,
      op: string,
      name: string,
      notesPlace = !call.isSpeculative,
    ): Promise<unknown> {
      const error = notesPlace ? new Error(name) : null
      return watched(call, send(call, op, error, { kind: Write }), error)
    },
    writeAhead(call: Call, op: string, result: unknown): Promise<unknown> {
      telling.tell(call, op)
      return watched(call, telling.promise(call, Write, result), null)
    },
    readAhead(call: Call, op: string, result: unknown): Promise<unknown> {
      telling.tell(call, op)
      return telling.promise(call, Promise, result)
    },
    /** The place of an operation that the call never waited for. */
    dangling(call: Call): Error | null {
      for (const one of calls.waiting.values()) {
        if (one.call === call && one.isOwed) return one.error
      }
      return null
    },
  }
}

interface OperationBounds {
  /** Of one operation. */
  readonly operationCharacters: number
  /** Operations that are told in a row before the call waits for the server. */
  readonly toldMax: number
}

/** What `ctx` asks of the server. */
export function makeOperations(
  bridge: Bridge,
  sending: ReturnType<typeof makeSending>,
  { operationCharacters: most, toldMax }: OperationBounds,
) {
  const { stringify } = JSON

  function checkSize(op: string): void {
    if (op.length <= most) return
    throw new RangeError(`the operation has ${op.length} characters: at most ${most}`)
  }

  function read(call: Call, op: string): Promise<unknown> {
    checkSize(op)
    return sending.read(call, op)
  }

  /** What was given may be behind what is written now. */
  function write(call: Call, op: string, name: string): Promise<unknown> {
    checkSize(op)
    call.given.clear()
    return sending.write(call, op, name)
  }

  /** Code that writes without end must hear, now and then, that nobody wants it any more. */
  function writeAhead(call: Call, op: string, name: string, result: unknown): Promise<unknown> {
    if (call.toldInRow >= toldMax) return write(call, op, name)
    checkSize(op)
    call.given.clear()
    return sending.writeAhead(call, op, result)
  }

  return {
    read,
    /** What may still be open when the Function ends: it ends with it. */
    leave: sending.leave,
    get(call: Call, id: string): Promise<unknown> {
      const op = `["get",${stringify(id)}]`
      const document = call.given.get(id)
      if (document === undefined) return read(call, op)
      // What is asked for again is another copy.
      call.given.delete(id)
      return sending.readAhead(call, op, document)
    },
    insert(call: Call, op: string, table: string): Promise<unknown> {
      const { inserts, nowMicros, seed } = call
      if (!call.isSpeculative || inserts === null) return write(call, op, 'ctx.db.insert')
      const id = bridge.documentId(table, nowMicros, seed, inserts)
      const inserted = writeAhead(call, op, 'ctx.db.insert', id)
      call.inserts = inserts + 1 // Behind what throws where it is too long.
      return inserted
    },
    /** `name` is what the author wrote. */
    change: (call: Call, op: string, name: string): Promise<unknown> =>
      call.isSpeculative ? writeAhead(call, op, name, null) : write(call, op, name),
    /** Calls a Function: many catch its failures, and so it has its place also ahead. */
    run(call: Call, kind: string, op: string, name: string): Promise<unknown> {
      checkSize(op)
      if (kind === 'query') return sending.read(call, op, true)
      // What it calls may write and insert too.
      call.inserts = null
      call.given.clear()
      return sending.write(call, op, name, true)
    },
    dangling: sending.dangling,
  }
}

/** The frame of `encodeRejection`. */
export type RefusedFrame = readonly [
  type: string,
  call: number,
  operation: number,
  name: string,
  message: string,
  code: string | null,
  violated: ViolatedIndex | null,
]

/** What the server answers to operations. */
export function makeReplies(
  { waiting }: Calls,
  decode: Codec['decode'],
  /** Errors with which a call may end as a declared failure, with their codes. */
  failures: WeakMap<object, string>,
) {
  const { defineProperty } = Object
  /** Makes an error an instance of the class that the module `svc` exports. */
  const violation = Symbol.for('svc.uniqueViolation')

  /** Null where nobody waits any more. */
  function take(id: number): Waiting | null {
    const found = waiting.get(id)
    if (found === undefined) return null
    waiting.delete(id)
    found.call.open -= 1
    if (found.isOwed) found.call.pending -= 1
    return found
  }

  return {
    reply(id: number, json: unknown): void {
      take(id)?.resolve(decode(json))
    },
    /** Documents of the realm: the call's own copies. */
    found(id: number, content: unknown): void {
      take(id)?.resolve(content)
    },
    /** Throws in the author's code, with the place of the operation in its stack. */
    refuse([, , id, name, message, code, violated]: RefusedFrame): void {
      const found = take(id)
      if (found === null) return
      const { reject } = found
      const error = found.error ?? new Error()
      defineProperty(error, 'name', { value: name, writable: true, configurable: true })
      error.message = message
      if (code !== null) {
        defineProperty(error, 'code', { value: code, enumerable: true, writable: true })
        if (name === 'FunctionError') failures.set(error, code)
      }
      if (violated !== null) {
        const { table, index } = violated
        const fixed = { enumerable: true, writable: true, configurable: true }
        defineProperty(error, 'table', { value: table, ...fixed })
        defineProperty(error, 'index', { value: index, ...fixed })
        defineProperty(error, violation, { value: true })
      }
      reject(error)
    },
  }
}
