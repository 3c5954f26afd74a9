/** `ctx`, the first argument of a handler, by the kind of its Function. */
import type { Call } from '../calls.ts'
import { callMicros } from '../globals/clock.ts'
import { newLog } from '../logging.ts'
import { sendRead } from '../operations.ts'
import { failureCodes } from '../replies.ts'
import { Auth } from './auth.ts'
import { Configuration } from './configuration.ts'
import { MutationDatabase, QueryDatabase } from './database.ts'
import { functionCaller } from './function-calls.ts'
import { Scheduler } from './scheduler.ts'
import { Storage } from './storage.ts'

function newDatabase(call: Call): QueryDatabase | MutationDatabase | null {
  switch (call.definition.kind) {
    case 'query':
      return new QueryDatabase(call)
    case 'mutation':
      return new MutationDatabase(call)
    case 'action':
      return null
  }
}

/** Creates the `ctx` of one call. */
export function newContext(call: Call): unknown {
  const db = newDatabase(call)
  return {
    get db() {
      if (db !== null) return db
      throw new TypeError('ctx.db in an Action: use ctx.runQuery and ctx.runMutation')
    },
    auth: new Auth(call),
    config: new Configuration(call),
    get storage() {
      return new Storage(call)
    },
    get scheduler() {
      return new Scheduler(call)
    },
    log: newLog(call),
    runQuery: functionCaller(call, 'query'),
    runMutation: functionCaller(call, 'mutation'),
    runAction: functionCaller(call, 'action'),
    usage: () => sendRead(call, '["usage"]'),
    now: () => callMicros(call),
    fail(code: string): never {
      if (typeof code !== 'string' || !Object.hasOwn(call.definition.errors, code)) {
        throw new TypeError(`ctx.fail("${code}"): declare it, errors: { ${code}: "conflict" }`)
      }
      const failure = new Error(`ctx.fail("${code}")`)
      failureCodes.set(failure, code)
      throw failure
    },
  }
}
