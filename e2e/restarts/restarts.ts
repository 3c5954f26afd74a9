/** Restarts of the compiled server under calls, and what became of the calls. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type Application, application, fields, query } from '../application.ts'
import { Load, type Report } from './load.ts'

const SCHEMA = `
import { defineSchema, table, v } from 'svc'
export default defineSchema({ entries: table({ number: v.int64() }).index('byNumber', ['number']) })
`

const FUNCTIONS = `
import { mutation, query, v } from 'svc'
const clients = ['confidential'] as const

export const add = mutation({
  clients, arguments: { number: v.int64() }, returns: v.null(),
  handler: async (ctx, { number }) => {
    await ctx.db.insert('entries', { number })
    return null
  },
})

export const count = query({
  clients, arguments: { number: v.int64() }, returns: v.int64(),
  handler: async (ctx, { number }) => {
    const found = ctx.db.table('entries').index('byNumber', (q) => q.eq('number', number))
    return BigInt((await found.take(3)).length)
  },
})

export const page = query({
  clients,
  arguments: { cursor: v.nullable(v.string()) },
  returns: v.object({ numbers: v.array(v.int64()), cursor: v.nullable(v.string()) }),
  handler: async (ctx, { cursor: from }) => {
    const page = await ctx.db.table('entries').scan().paginate({ cursor: from, limit: 1_000 })
    const numbers = page.items.map(({ number }) => number)
    return { numbers, cursor: page.done ? null : page.cursor }
  },
})
`

/** Calls with results between two restarts. */
const CALLS_BETWEEN = 300

/** Expects that no caller sees an error and that each Mutation took effect exactly once. */
export async function restartUnderCalls(options: {
  readonly restarts: number
  readonly callsPerSecond: number
}): Promise<void> {
  const app = await application((workspace) => {
    rmSync(join(workspace, 'functions'), { recursive: true })
    mkdirSync(join(workspace, 'functions'))
    writeFileSync(join(workspace, 'schema.ts'), SCHEMA)
    writeFileSync(join(workspace, 'functions/entries.ts'), FUNCTIONS)
  })
  try {
    const load = new Load(app, options.callsPerSecond)
    const restartMs: number[] = []
    for (let restart = 0; restart < options.restarts; restart++) {
      await load.untilAnswered(CALLS_BETWEEN)
      const begun = performance.now()
      await app.restart('stop')
      restartMs.push(Math.round(performance.now() - begun))
    }
    await load.untilAnswered(CALLS_BETWEEN)
    await load.stop()
    show(load.report, restartMs)
    expect(load.report.errors).toEqual([])
    expect(load.report.missed).toEqual([])
    // Otherwise no restart met a call.
    expect(Object.keys(load.report.retries)).not.toEqual([])
    const ascending = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)
    expect(ascending(await storedNumbers(app))).toEqual(ascending(load.report.added))
  } finally {
    await app.installation.dispose()
  }
}

function show({ answered, retries, slowestMs }: Report, restartMs: readonly number[]): void {
  const restarts = `restarts ${restartMs.join(', ')} ms`
  const calls = `${answered} calls, slowest ${Math.round(slowestMs)} ms`
  process.stdout.write(`${restarts}; ${calls}; retried ${JSON.stringify(retries)}\n`)
}

async function storedNumbers(app: Application): Promise<number[]> {
  const stored: number[] = []
  let cursor: string | null = null
  do {
    const given = cursor === null ? { type: 'null' } : { type: 'string', value: cursor }
    const { body } = await query(app, { function: 'entries.page', arguments: { cursor: given } })
    const page = fields(body.result)
    for (const { value } of page.numbers.value) stored.push(Number(value))
    cursor = page.cursor.value ?? null
  } while (cursor !== null)
  return stored
}
