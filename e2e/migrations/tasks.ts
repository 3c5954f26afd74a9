/** A Workspace with a migration that counts in each document how often it was passed. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const SCHEMA = `
import { defineSchema, table, v } from 'svc'
export default defineSchema({
  tasks: table({
    number: v.int64(), title: v.string(), passes: v.optional(v.int64()), touches: v.int64(),
  }).unique('byNumber', ['number']),
})
`
const FUNCTIONS = `
import { mutation, query, v } from 'svc'
const clients = ['confidential'] as const
const range = { from: v.int64(), count: v.int64() }
const TITLE = 'a task with a title of some length, as they are in practice'

export const fill = mutation({
  clients, arguments: range, returns: v.null(),
  handler: async (ctx, { from, count }) => {
    for (let number = from; number < from + count; number++) {
      await ctx.db.insert('tasks', { number, title: TITLE, touches: 0n })
    }
    return null
  },
})
export const rewrite = mutation({
  clients, arguments: range, returns: v.null(),
  handler: async (ctx, { from, count }) => {
    const tasks = ctx.db.table('tasks').index('byNumber', (q) =>
      q.gte('number', from).lt('number', from + count))
    for (const { _id, touches } of await tasks.collect()) {
      await ctx.db.patch(_id, { touches: touches + 1n })
    }
    return null
  },
})
export const touch = mutation({
  clients, arguments: { number: v.int64() }, returns: v.null(),
  handler: async (ctx, { number }) => {
    const found = ctx.db.table('tasks').index('byNumber', (q) => q.eq('number', number))
    const task = await found.first()
    await ctx.db.patch(task!._id, { touches: task!.touches + 1n })
    return null
  },
})
export const get = query({
  clients, arguments: { number: v.int64() }, returns: v.nullable(v.string()),
  handler: async (ctx, { number }) => {
    const found = ctx.db.table('tasks').index('byNumber', (q) => q.eq('number', number))
    const task = await found.first()
    return task?.title ?? null
  },
})
export const tally = query({
  clients, arguments: { from: v.int64(), count: v.int64() },
  returns: v.object({ found: v.int64(), once: v.int64() }),
  handler: async (ctx, { from, count }) => {
    const tasks = ctx.db.table('tasks').index('byNumber', (q) =>
      q.gte('number', from).lt('number', from + count))
    const found = await tasks.collect()
    const once = found.filter(({ passes }) => passes === 1n)
    return { found: BigInt(found.length), once: BigInt(once.length) }
  },
})
`
const MIGRATIONS = `
import { migration } from 'svc'
export default {
  countPasses: migration({
    table: 'tasks',
    each: (ctx, task) => ({ passes: (task.passes ?? 0n) + 1n }),
  }),
}
`

/** Replaces the files of the template. */
export function writeTasks(workspace: string): void {
  for (const name of ['functions', 'crons.ts']) {
    rmSync(join(workspace, name), { recursive: true, force: true })
  }
  mkdirSync(join(workspace, 'functions'))
  writeFileSync(join(workspace, 'schema.ts'), SCHEMA)
  writeFileSync(join(workspace, 'functions', 'tasks.ts'), FUNCTIONS)
  writeFileSync(join(workspace, 'migrations.ts'), MIGRATIONS)
}
