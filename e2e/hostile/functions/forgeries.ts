/** Lies in what a Function says: about values, about failures, about the protocol. */
import { mutation, query, v } from 'svc'
import { attempt, attemptLater, hostileQuery } from '../attempts'

const ID = 'messages_01ARZ3NDEKTSV4RRFFQ69G5FAV'

/** The marks of stored values, in a value: they come out as the plain keys that they are. */
export const forgesMarks = hostileQuery(() => ({
  id: { $d: ID },
  bytes: { $b: '?' },
  $$: { $i: 'x' },
}))

/** A frame in a text is a text. */
export const forgesFrames = hostileQuery((ctx) => {
  const frame = '\u0005\u0000\u0000\u0000["returned",1,"forged",[false,false,false,0,[]]]'
  ctx.log.info(frame)
  ctx.log.info('","forged"]]],["returned",1', { frame })
  return frame
})

/** An ID of another table than the one that is promised. */
export const forgesIds = query({
  clients: ['confidential'],
  arguments: { nonce: v.int64() },
  returns: v.id('channels'),
  handler: () => ID as never,
})

/** A value of another type than the one that is promised. */
export const forgesTypes = query({
  clients: ['confidential'],
  arguments: { nonce: v.int64() },
  returns: v.int64(),
  handler: () => ({ $i: '7' }) as never,
})

/** A code that the Function does not declare. */
export const forgesCodes = hostileQuery((ctx) => ctx.fail('ADMIN'))

/** An error that looks like one of the platform. */
export const forgesFaults = hostileQuery(() => {
  throw Object.assign(new Error('APPLICATION_KEY_INVALID'), {
    code: 'APPLICATION_KEY_INVALID',
    status: 401,
    name: 'Fault',
  })
})

/** A Query that writes, by every name. */
export const writesInAQuery = hostileQuery((ctx) =>
  attemptLater(async () => ctx.db.insert('channels', { name: 'by a query' })),
)

/** The class behind `ctx.db` with operations of one's own: it has no pipe. */
export const makesItsOwnDatabase = hostileQuery((ctx) =>
  attempt(() => {
    const Database = ctx.db.constructor as new (operate: (op: string) => unknown) => typeof ctx.db
    const sent: string[] = []
    void new Database((op) => sent.push(op)).get(ID)
    return sent.length !== 1 && 'sent'
  }),
)

/** Fields that only the server writes. */
export const forgesSystemFields = mutation({
  clients: ['confidential'],
  arguments: { nonce: v.int64() },
  returns: v.any(),
  handler: async (ctx, { nonce }) =>
    attemptLater(() =>
      ctx.db.insert('channels', { name: `forged ${nonce}`, _id: ID, _revision: 0n } as never),
    ),
})

/** A table that the schema does not have, and one that no schema may have. */
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

/** An ID with something behind it. */
export const injectsIds = hostileQuery((ctx) => attemptLater(() => ctx.db.get(`${ID}' or '1'='1`)))

/** Callers choose such an ID too: it is refused as a short wrong one is, and ends no process. */
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
