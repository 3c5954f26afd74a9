/**
 * Random programs of operations, and a Workspace that interprets them: the same program has the
 * same outcome wherever its engine runs.
 */
import { fc } from '../properties.ts'

export const PROGRAM_FILES = {
  'schema.ts': `import { defineSchema, table, v } from 'svc'
export default defineSchema({
  notes: table({ n: v.int64(), name: v.optional(v.string()), tags: v.optional(v.any()) })
    .index('byN', ['n'])
    .unique('byName', ['name']),
})
`,
  'functions/programs.ts': `import { action, mutation, query, v } from 'svc'
import { api } from '../_generated/api'

const clients = ['public'] as const
const program = {
  clients,
  arguments: { documents: v.array(v.string()), steps: v.any() },
  returns: v.any(),
  errors: { NO: 'conflict' },
} as const

async function work(
  ctx: any,
  { documents, steps }: { documents: string[]; steps: any },
  pause = async () => {},
) {
  const own: string[] = []
  const idOf = (number: number) => [...documents, ...own][number % (documents.length + own.length)]
  const plain = ({ _createdAt, _revision, ...fields }: any) => fields
  const all = async (steps: any) => {
    const seen: unknown[] = []
    for (const step of steps) seen.push((await one(step)) ?? null)
    return seen
  }
  async function one(step: any): Promise<any> {
    switch (step.do) {
      case 'get': {
        const found = await ctx.db.get(idOf(Number(step.of)))
        return found && plain(found)
      }
      case 'insert': {
        const id = await ctx.db.insert('notes', step.fields)
        own.push(id)
        return id
      }
      case 'patch': return ctx.db.patch(idOf(Number(step.of)), step.fields)
      case 'unset': return ctx.db.patch(idOf(Number(step.of)), { name: undefined })
      case 'replace': return ctx.db.replace(idOf(Number(step.of)), step.fields)
      case 'delete': return ctx.db.delete(idOf(Number(step.of)))
      case 'scan': {
        const rows = ctx.db.table('notes').scan().order(step.order)
        return (await rows.take(Number(step.count))).map(plain)
      }
      case 'index': {
        const rows = ctx.db.table('notes').index('byN', (q: any) => q.gte('n', step.from))
        return (await rows.order(step.order).take(Number(step.count))).map(plain)
      }
      case 'read': return (await ctx.usage()).documentsRead.used
      case 'query': return ctx.runQuery(api.programs.look, { documents, steps: step.steps })
      case 'mutation': {
        await pause()
        return ctx.runMutation(api.programs.change, { documents, steps: step.steps })
      }
      case 'at once': return Promise.all(step.steps.map(one))
      case 'try':
        try {
          return await all(step.steps)
        } catch (error) {
          return (error as Error).name
        }
      case 'throw': throw new RangeError('on purpose')
      case 'fail': return ctx.fail('NO')
    }
  }
  return all(steps)
}

export const all = query({
  clients,
  returns: v.array(v.id('notes')),
  handler: async (ctx) => (await ctx.db.table('notes').scan().collect()).map(({ _id }) => _id),
})
export const look = query({ ...program, handler: (ctx, input) => work(ctx, input) })
export const change = mutation({ ...program, handler: (ctx, input) => work(ctx, input) })
/** Documents of one millisecond are in the order of their IDs: its Mutations share none. */
const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 2))
export const act = action({ ...program, handler: (ctx, input) => work(ctx, input, pause) })
`,
}

export interface Step {
  readonly do: string
  readonly [name: string]: unknown
}

export interface Program {
  readonly kind: 'query' | 'mutation' | 'action'
  readonly name: string
  readonly steps: readonly Step[]
}

const int64 = fc.nat({ max: 5 }).map(BigInt)
/** A name out of thirteen, so that some inserts find their name taken. */
const name = fc.nat({ max: 12 }).map((n) => `name${n}`)
const fields = fc.oneof(
  // One in ten is not an int64, which the engine rejects.
  { arbitrary: fc.record({ n: int64, name }, { requiredKeys: ['n'] }), weight: 9 },
  { arbitrary: fc.record({ n: fc.constant(1.5) }), weight: 1 },
)
const partial = fc.oneof(fc.record({ n: int64 }), fc.record({ name }))
const number = fc.nat({ max: 15 }).map(BigInt)
const order = fc.constantFrom('asc', 'desc')
const count = fc.integer({ min: 1, max: 6 }).map(BigInt)
const step = (name: string, rest: Record<string, fc.Arbitrary<unknown>> = {}) =>
  fc.record({ do: fc.constant(name), ...rest }) as fc.Arbitrary<Step>

const READS = [
  step('get', { of: number }),
  step('get', { of: number }),
  step('scan', { order, count }),
  step('index', { from: int64, order, count }),
  step('read'),
]
const WRITES = [
  step('insert', { fields }),
  step('insert', { fields }),
  step('insert', { fields }),
  step('patch', { of: number, fields: partial }),
  step('replace', { of: number, fields }),
  step('unset', { of: number }),
  step('delete', { of: number }),
]
const ENDS = [step('throw'), step('fail')]

function stepsOf(simple: readonly fc.Arbitrary<Step>[], depth: number): fc.Arbitrary<Step[]> {
  const plain = fc.oneof(...simple)
  if (depth === 0) return fc.array(plain, { maxLength: 4 })
  const isWriting = simple.includes(WRITES[0]!)
  const nested = [
    step('try', { steps: stepsOf([...simple, ...ENDS], depth - 1) }),
    step('query', { steps: stepsOf([...READS, ...ENDS], depth - 1) }),
    step('at once', { steps: fc.array(fc.oneof(...READS), { maxLength: 4 }) }),
    ...(isWriting ? [step('mutation', { steps: stepsOf([...simple, ...ENDS], depth - 1) })] : []),
  ]
  const any = fc.oneof({ arbitrary: plain, weight: 8 }, ...nested)
  return fc.array(any, { maxLength: 8 })
}

const ended = (steps: fc.Arbitrary<Step[]>) => {
  const end = fc.oneof({ arbitrary: fc.constant([]), weight: 8 }, fc.tuple(fc.oneof(...ENDS)))
  return fc.tuple(steps, end).map(([first, last]) => [...first, ...last])
}
/** An Action has no documents of its own. */
const called = fc.array(
  fc.oneof(
    step('query', { steps: stepsOf(READS, 1) }),
    step('mutation', { steps: ended(stepsOf([...READS, ...WRITES], 1)) }),
  ),
  { maxLength: 3 },
)

const mutations = ended(stepsOf([...READS, ...WRITES], 2)).map(
  (steps): Program => ({ kind: 'mutation', name: 'programs.change', steps }),
)

export const programs: fc.Arbitrary<Program> = fc.oneof(
  { arbitrary: mutations, weight: 3 },
  ended(stepsOf(READS, 2)).map(
    (steps): Program => ({ kind: 'query', name: 'programs.look', steps }),
  ),
  ended(called).map((steps): Program => ({ kind: 'action', name: 'programs.act', steps })),
)
