/** Functions that say which Release they are of, and calls of them. */
import { ids, int64 } from '../calls.ts'
import type { PacedRequest } from './paced-load.ts'

/** Text of a schema's table `marks`, which the Functions use. */
export const MARKS = `marks: table({ number: v.int64() }).index('byNumber', ['number']),`

/** Text of `functions/versions.ts`; `release` is what its Functions answer. */
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

/** By turns. */
export const targetOf = (number: number): Target => TARGETS[number % TARGETS.length]!

/** Of ten calls to each target. */
const MUTATIONS = 2
/** Numbers of those Queries that are asked for again and again. */
const CACHED = 50

/** Every other Query was asked before. */
export function callOf(number: number): PacedRequest {
  const target = targetOf(number)
  const turn = Math.floor(number / TARGETS.length)
  if (turn % 10 < MUTATIONS) {
    const more = `,"operationId":"${ids.make('opn')}"`
    return { path: '/v1/mutation', body: envelope('mark', { target, number, more }) }
  }
  const asked = turn % 2 === 0 ? turn % CACHED : number
  return { path: '/v1/query', body: envelope('look', { target, number: asked, more: '' }) }
}

function envelope(
  name: 'look' | 'mark',
  { target, number, more }: { readonly target: Target; readonly number: number; more: string },
): string {
  const entry = `{"key":"number","value":${int64(number)}}`
  const given = `"arguments":{"type":"object","value":[${entry}]}`
  return `{"version":1,"target":"${target}","function":"versions.${name}",${given}${more}}`
}

/** The number that the Function answered; null where the call failed. */
export function answeredBy(text: string): number | null {
  const match = /"result":\{"type":"int64","value":"(\d+)"\}/.exec(text)
  return text.startsWith('HTTP/1.1 200') && match !== null ? Number(match[1]) : null
}
