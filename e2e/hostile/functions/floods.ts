/** Attempts to log, request or write more than a call may. */
import { hostileMutation, hostileQuery } from '../attempts'

const ID = 'channels_01ARZ3NDEKTSV4RRFFQ69G5FAV'

/** Sends operations without waiting for any response. */
export const floodsOperations = hostileQuery((ctx) => {
  for (;;) void ctx.db.get(ID)
})

/** Sends operations one after the other, endlessly. */
export const asksForever = hostileQuery(async (ctx) => {
  for (;;) await ctx.db.get(ID)
})

/** Scans ranges endlessly, each as a list of its own. */
export const scansForever = hostileQuery(async (ctx) => {
  for (;;)
    await Promise.all(
      Array.from({ length: 100 }, () => ctx.db.table('messages').scan().take(1_000)),
    )
})

/** Sends one message that exceeds the size of a frame. */
export const sendsAGiant = hostileMutation((ctx) =>
  ctx.db.insert('channels', { name: 'x'.repeat(20e6) }),
)

/** Logs 200,000 lines, of which 256 are kept. A million would exceed the CPU time of a call. */
export const floodsTheLog = hostileQuery((ctx) => {
  for (let i = 0; i < 2e5; i++) ctx.log.info(`line ${i}`)
  return 'stopped'
})

/** Logs one line of two million characters, with control characters. */
export const logsAGiant = hostileQuery((ctx) => {
  ctx.log.info(`\u001b[2J\u0000\r\n{"level":"fatal"}${'x'.repeat(2e6)}`, { data: 'y'.repeat(2e6) })
  return 'stopped'
})

/** Throws an error of ten million characters. */
export const throwsAGiant = hostileQuery(() => {
  throw new Error('x'.repeat(1e7))
})

/** Throws a value whose traps throw when it is inspected. */
export const throwsAMine = hostileQuery(() => {
  throw new Proxy(
    {},
    {
      get() {
        throw new Error('again')
      },
      getPrototypeOf() {
        throw new Error('and again')
      },
    },
  )
})

export const answersAGiant = hostileQuery(() => 'x'.repeat(9e6))

export const answersTooManyItems = hostileQuery(() => new Array(1e6).fill(1))

export const answersTooDeep = hostileQuery(() => {
  let nest: unknown = null
  for (let i = 0; i < 1e5; i++) nest = [nest]
  return nest
})

export const answersACircle = hostileQuery(() => {
  const circle: Record<string, unknown> = {}
  circle.circle = circle
  return circle
})

/** Inserts more documents than a transaction may write. */
export const insertsForever = hostileMutation(async (ctx, { nonce }) => {
  for (let i = 0; ; i++) await ctx.db.insert('channels', { name: `flood ${nonce} ${i}` })
})

/** Starts writes without waiting for them. */
export const leavesWrites = hostileMutation((ctx, { nonce }) => {
  for (let i = 0; i < 100; i++) void ctx.db.insert('channels', { name: `left ${nonce} ${i}` })
  return 'done'
})
