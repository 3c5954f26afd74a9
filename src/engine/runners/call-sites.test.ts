/**
 * The trace of a failed call contains the author's line, however the code returns or awaits the
 * promise of the operation. Method: real runners; every operation is rejected, and the frames of
 * the trace are compared with the marks in the source.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { poolBench } from '../../../testing/runners.ts'
import type { FunctionKind } from '../../value/manifest.ts'
import { OperationError } from '../calls/operation-error.ts'
import type { RunnerHost } from '../calls/outcomes.ts'

const SCHEMA = `tables({ notes: { fields: {}, indexes: [
  { name: 'byN', fields: ['n'], unique: false },
] } })`
const DEEP = `${'{ a: ['.repeat(12)}new Date(0)${'] }'.repeat(12)}`

/** Handlers by name; a comment with the name marks the expected line. */
const FUNCTIONS = {
  awaited: [
    'mutation',
    `async (ctx) => {
    await ctx.db.insert('notes', {}) /* awaited */
  }`,
  ],
  returned: ['mutation', `(ctx) => ctx.db.insert('notes', {}) /* returned */`],
  patched: ['mutation', `(ctx) => ctx.db.patch('notes_x', {}) /* patched */`],
  replaced: ['mutation', `(ctx) => ctx.db.replace('notes_x', {}) /* replaced */`],
  deleted: ['mutation', `(ctx) => ctx.db.delete('notes_x') /* deleted */`],
  got: ['query', `(ctx) => ctx.db.get('notes_x') /* got */`],
  listed: [
    'query',
    `(ctx) => {
    return ctx.db.table('notes').index('byN', (q) => q.eq('n', 1)).first() /* listed */
  }`,
  ],
  paged: [
    'query',
    `(ctx) => {
    return ctx.db.table('notes').scan().paginate({ cursor: 'x', limit: 1 }) /* paged */
  }`,
  ],
  chained: [
    'mutation',
    `(ctx) => Promise.resolve().then(
    () => ctx.db.insert('notes', {}) /* chained */
  )`,
  ],
  called: ['mutation', `(ctx) => ctx.runMutation(ref('mutation', 'awaited')) /* called */`],
  used: ['query', `(ctx) => ctx.usage() /* used */`],
  configured: ['query', `(ctx) => ctx.config.variable('GREETING') /* configured */`],
  issued: ['mutation', `(ctx) => ctx.auth.issueGuest({ expiresInSeconds: 60 }) /* issued */`],
  fetched: ['action', `() => fetch('https://a.test/') /* fetched */`],
  secret: ['action', `(ctx) => ctx.config.secret('KEY') /* secret */`],
  untabled: ['query', `(ctx) => ctx.db.table('none') /* untabled */`],
  unencodable: ['mutation', `(ctx) => ctx.db.insert('notes', ${DEEP}) /* unencodable */`],
} satisfies Record<string, readonly [FunctionKind, string]>

const bench = poolBench()
const members = Object.entries(FUNCTIONS).map(
  ([name, [kind, text]]) => `${name}: ${kind}(${text}),`,
)
const helped = `
  helped: mutation(
    (ctx) => helper(ctx) /* outer */
  ),`
const code = (() => {
  const release = bench.release([...members, helped].join('\n'), SCHEMA)
  const helper = `function helper(ctx) {
  return ctx.db.insert('notes', {}) /* inner */
}
`
  return { ...release, source: helper + release.source }
})()
const lineOf = (mark: string) =>
  code.source.split('\n').findIndex((line) => line.includes(`/* ${mark} */`)) + 1

beforeAll(() => bench.pool.start({ sandbox: 'preferred' }))
afterAll(() => bench.pool.close())

const rejecting: RunnerHost = {
  operation: async () => {
    throw new OperationError('TypeError', 'rejected')
  },
}

/** Returns the lines of the source in the trace, the innermost first. */
async function tracedLines(name: string, kind: FunctionKind): Promise<number[]> {
  const outcome = await bench.pool.invoke(code, bench.call(name, { kind }), rejecting)
  expect(outcome).toMatchObject({ kind: 'threw' })
  if (outcome.kind !== 'threw') return []
  const frames = outcome.error.stack.split('\n')
  return frames.map((frame) => Number(/release\.js:(\d+):\d+/.exec(frame)?.[1]))
}

describe('a rejected operation has the line that made it', () => {
  test.each(Object.keys(FUNCTIONS) as (keyof typeof FUNCTIONS)[])('%s', async (name) => {
    expect((await tracedLines(name, FUNCTIONS[name][0]))[0]).toBe(lineOf(name))
  })
})

test('a rejected operation of a helper has the lines of the helper and of its caller', async () => {
  const lines = await tracedLines('helped', 'mutation')
  expect(lines.slice(0, 2)).toEqual([lineOf('inner'), lineOf('outer')])
})
