/** Forges values, failures and messages of the protocol. */
import { mutation, query, v } from 'svc'
import { attempt, attemptLater, hostileQuery } from '../attempts'

const ID = 'messages_01ARZ3NDEKTSV4RRFFQ69G5FAV'

/** Returns the marks of stored values. They are encoded as plain keys. */
export const forgesMarks = hostileQuery(() => ({
  id: { $d: ID },
  bytes: { $b: '?' },
  $$: { $i: 'x' },
}))

/** Logs and returns a frame of the protocol. It stays a text. */
export const forgesFrames = hostileQuery((ctx) => {
  const frame = '\u0005\u0000\u0000\u0000["returned",1,"forged",[false,false,false,0,[]]]'
  ctx.log.info(frame)
  ctx.log.info('","forged"]]],["returned",1', { frame })
  return frame
})

/** Returns an ID of another table than the declared one. */
export const forgesIds = query({
  clients: ['confidential'],
  arguments: { nonce: v.int64() },
  returns: v.id('channels'),
  handler: () => ID as never,
})

/** Returns a value of another type than the declared one. */
export const forgesTypes = query({
  clients: ['confidential'],
  arguments: { nonce: v.int64() },
  returns: v.int64(),
  handler: () => ({ $i: '7' }) as never,
})

/** Fails with a code that the Function does not declare. */
export const forgesCodes = hostileQuery((ctx) => ctx.fail('ADMIN'))

/** Throws an error that looks like one of the platform. */
export const forgesFaults = hostileQuery(() => {
  throw Object.assign(new Error('APPLICATION_KEY_INVALID'), {
    code: 'APPLICATION_KEY_INVALID',
    status: 401,
    name: 'Fault',
  })
})

/** Writes in a Query. */
export const writesInAQuery = hostileQuery((ctx) =>
  attemptLater(async () => ctx.db.insert('channels', { name: 'by a query' })),
)

/** Uses the class behind `ctx.db` with operations of its own, which lead to no pipe. */
export const makesItsOwnDatabase = hostileQuery((ctx) =>
  attempt(() => {
    const Database = ctx.db.constructor as new (operate: (op: string) => unknown) => typeof ctx.db
    const sent: string[] = []
    void new Database((op) => sent.push(op)).get(ID)
    return sent.length !== 1 && 'sent'
  }),
)

/** Writes fields that only the server may set. */
export const forgesSystemFields = mutation({
  clients: ['confidential'],
  arguments: { nonce: v.int64() },
  returns: v.any(),
  handler: async (ctx, { nonce }) =>
    attemptLater(() =>
      ctx.db.insert('channels', { name: `forged ${nonce}`, _id: ID, _revision: 0n } as never),
    ),
})

/** Scans a table that the schema does not have, and one that no schema can have. */
export const namesOtherTables = hostileQuery((ctx) =>
  attemptLater(async () => {
    const tables = ['operators', 'files', '__proto__', 'sqlite_master', "x'; drop table documents"]
    for (const table of tables) {
      try {
        return await ctx.db.table(table).scan().take(1)
      } catch {}
    }
    return null
  }),
)

/** Reads an ID with SQL after it. */
export const injectsIds = hostileQuery((ctx) => attemptLater(() => ctx.db.get(`${ID}' or '1'='1`)))

/** Reads IDs that are too long. They are rejected like any malformed ID and end no process. */
export const sendsLongIds = hostileQuery((ctx) =>
  attemptLater(async () => {
    for (const length of [300, 1_000_000]) {
      try {
        return await ctx.db.get('x'.repeat(length))
      } catch {}
    }
    return null
  }),
)
