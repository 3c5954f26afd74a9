/** Functions that return the number of their Release, and calls of them. */
import { ids, int64 } from '../calls.ts'
import type { PacedRequest } from './paced-load.ts'

/** Source of a schema's table `marks`, which the Functions use. */
export const MARKS = `marks: table({ number: v.int64() }).index('byNumber', ['number']),`

/** Source of `functions/versions.ts`; its Functions return `release`. */
export const versions = (release: number): string => `import { mutation, query, v } from 'svc'

const clients = ['confidential'] as const

export const look = query({
  clients,
  arguments: { number: v.int64() },
  returns: v.int64(),
  handler: async (ctx, { number }) => {
    await ctx.db.table('marks').index('byNumber', (q) => q.eq('number', number)).first()
    return ${release}n
  },
})

export const mark = mutation({
  clients,
  arguments: { number: v.int64() },
  returns: v.int64(),
  handler: async (ctx, { number }) => {
    await ctx.db.insert('marks', { number })
    return ${release}n
  },
})
`

export const TARGETS = ['channel:production', 'environment:default'] as const
export type Target = (typeof TARGETS)[number]

/** Alternates between the targets. */
export const targetOf = (number: number): Target => TARGETS[number % TARGETS.length]!

/** Number of Mutations in ten calls to each target. */
const MUTATIONS = 2
/** Number of distinct Queries that are repeated. */
const CACHED = 50

/** Creates the request with this number. Every other Query is a repeated one. */
export function createCall(number: number): PacedRequest {
  const target = targetOf(number)
  const turn = Math.floor(number / TARGETS.length)
  if (turn % 10 < MUTATIONS) {
    const more = `,"operationId":"${ids.make('opn')}"`
    return { path: '/v1/mutation', body: envelope('mark', { target, number, more }) }
  }
  const argument = turn % 2 === 0 ? turn % CACHED : number
  return { path: '/v1/query', body: envelope('look', { target, number: argument, more: '' }) }
}

function envelope(
  name: 'look' | 'mark',
  { target, number, more }: { readonly target: Target; readonly number: number; more: string },
): string {
  const entry = `{"key":"number","value":${int64(number)}}`
  const given = `"arguments":{"type":"object","value":[${entry}]}`
  return `{"version":1,"target":"${target}","function":"versions.${name}",${given}${more}}`
}

/** Returns the number that the Function returned; null if the call failed. */
export function parseRelease(text: string): number | null {
  const match = /"result":\{"type":"int64","value":"(\d+)"\}/.exec(text)
  return text.startsWith('HTTP/1.1 200') && match !== null ? Number(match[1]) : null
}
