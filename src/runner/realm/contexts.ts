/** `ctx`: what a handler works with, by the kind of its Function. */
import type { makeAuth } from './callers.ts'
import type { Call, makeOperations } from './calls.ts'
import type { Codec } from './codec.ts'
import type { makeConfiguration } from './configuration.ts'
import type { makeMutationDatabase, makeQueryDatabase } from './database.ts'
import type { makeLog } from './logging.ts'

/** Makes the `ctx` of one call. */
export function makeContext(
  operations: ReturnType<typeof makeOperations>,
  failures: WeakMap<object, string>,
  parts: {
    readonly Query: ReturnType<typeof makeQueryDatabase>
    readonly Mutation: ReturnType<typeof makeMutationDatabase>
    readonly log: (call: Call) => ReturnType<typeof makeLog>
    readonly Auth: ReturnType<typeof makeAuth>
    readonly Configuration: ReturnType<typeof makeConfiguration>
    readonly runOf: ReturnType<typeof makeRunOf>
    /** Microseconds of the clock that the call may see. */
    readonly nowMicros: (call: Call) => bigint
  },
): (call: Call) => unknown {
  const { runOf } = parts

  function databaseOf(call: Call) {
    const read = (op: string) => operations.read(call, op)
    const get = (id: string) => operations.get(call, id)
    if (call.definition.kind !== 'mutation') return new parts.Query(read, get)
    return new parts.Mutation(read, get, {
      insert: (op, table) => operations.insert(call, op, table),
      change: (op, name) => operations.change(call, op, name),
    })
  }

  return (call) => {
    const db = call.definition.kind === 'action' ? null : databaseOf(call)
    return {
      get db() {
        if (db !== null) return db
        throw new TypeError('ctx.db in an Action: use ctx.runQuery and ctx.runMutation')
      },
      auth: new parts.Auth(call),
      config: new parts.Configuration(call),
      log: parts.log(call),
      runQuery: runOf(call, 'query'),
      runMutation: runOf(call, 'mutation'),
      runAction: runOf(call, 'action'),
      usage: () => operations.read(call, '["usage"]'),
      now: () => parts.nowMicros(call),
      fail(code: string): never {
        if (typeof code !== 'string' || !Object.hasOwn(call.definition.errors, code)) {
          throw new TypeError(`ctx.fail("${code}"): declare it, errors: { ${code}: "conflict" }`)
        }
        const failure = new Error(`ctx.fail("${code}")`)
        failures.set(failure, code)
        throw failure
      },
    }
  }
}

/** `ctx.runQuery` and its like. */
export function makeRunOf(operations: ReturnType<typeof makeOperations>, encode: Codec['encode']) {
  const { stringify } = JSON
  const referenceKey = Symbol.for('svc.reference')
  const functionKey = Symbol.for('svc.function')
  const names = { query: 'ctx.runQuery', mutation: 'ctx.runMutation', action: 'ctx.runAction' }
  type Marked = Readonly<Record<string | symbol, unknown>>

  function nameOf(reference: Marked | null | undefined, verb: string): string {
    const path: unknown = reference?.[referenceKey]
    if (typeof path === 'string') return path
    const name: unknown = reference?.name
    if (typeof name === 'string' && typeof reference?.kind === 'string') return name
    throw new TypeError(
      reference?.[functionKey] === undefined
        ? `${verb} needs a reference such as internal.messages.list of "_generated/api"`
        : `${verb} is given the Function itself: pass its reference of "_generated/api"`,
    )
  }

  function check(kind: keyof typeof names, caller: Call['definition']['kind']): void {
    if (kind === 'mutation' && caller === 'query') {
      throw new TypeError(`${names.mutation} in a Query: make the Function a mutation`)
    }
    if (kind === 'action' && caller !== 'action') {
      throw new TypeError(`${names.action}: only an Action calls an Action`)
    }
  }

  return (call: Call, kind: keyof typeof names) =>
    (reference: Marked, args: unknown = {}): Promise<unknown> => {
      const verb = names[kind]
      check(kind, call.definition.kind)
      const name = nameOf(reference, verb)
      const op = `["run","${kind}",${stringify(name)},${encode(args, `${verb} of ${name}`)}]`
      return operations.run(call, kind, op, verb)
    }
}
