/** Changes of identity that lose their connection at each message of the protocol in turn. */
import { Database } from '../../../src/database/database.ts'
import type { IdentityCore } from '../../../src/identity/core.ts'
import { Secret } from '../../../src/value/secret.ts'
import { type CutPoint, postgresProxy } from '../databases/postgres-proxy.ts'
import type { TestIdentity } from '../identity.ts'
import { codeOf } from '../operators.ts'

export type Change = (core: IdentityCore) => Promise<unknown>

export interface Loss {
  /** From 1, of the messages of the change. */
  readonly message: number
  readonly point: CutPoint
  /** Whether the message is the last one, which commits. */
  readonly last: boolean
  readonly where: string
}

export interface ConnectionLosses {
  /** Lists every loss that the change can meet, by running it once without one. */
  pointsOf(change: Change): Promise<readonly Loss[]>
  /** Runs the change with the loss. Returns the code of its error; `none` where it succeeds. */
  runWith(change: Change, loss: Loss): Promise<string>
  close(): Promise<void>
}

/** Messages that the server answers by themselves, Sync and Query, can be lost on the way back. */
const ANSWERED = ['S', 'Q']
const POINTS: readonly CutPoint[] = ['before', 'after', 'within-answer']

export async function identityLosses(t: TestIdentity): Promise<ConnectionLosses> {
  const proxy = await postgresProxy(t.url)
  const { system, credentials } = t.identity
  /** On one fresh connection, with its settings made before `arm`. */
  const through = async (change: Change, arm: () => void): Promise<string> => {
    const database = new Database({ url: new Secret(proxy.url), connectionsMax: 1 })
    try {
      await database.rows('select 1')
      arm()
      return await codeOf(change({ database, system, credentials }))
    } finally {
      await database.close()
    }
  }
  return {
    pointsOf: async (change) => {
      let stop: () => readonly string[] = () => []
      await through(change, () => {
        stop = proxy.record()
      })
      const types = stop()
      return types.flatMap((type, i) =>
        (ANSWERED.includes(type) ? POINTS : POINTS.slice(0, 1)).map((point) => ({
          message: i + 1,
          point,
          last: i + 1 === types.length,
          where: `message ${i + 1} of ${types.length} (${type}), ${point}`,
        })),
      )
    },
    runWith: async (change, { message, point }) => {
      const { cuts } = proxy
      const code = await through(change, () => proxy.cutAtMessage(message, point))
      if (proxy.cuts !== cuts + 1) throw new Error(`nothing was cut at message ${message}`)
      return code
    },
    close: () => proxy.close(),
  }
}

export async function lastAudit(t: TestIdentity): Promise<string> {
  const rows = await t.sql<{ last: string | null }>(
    'select max(audit_id) as last from service_platform_audit',
  )
  return rows[0]?.last ?? ''
}

/** Audit operations after `auditId`, sorted. The clock must have moved since. */
export async function recordsSince(t: TestIdentity, auditId: string): Promise<string[]> {
  const rows = await t.sql<{ operation: string }>(
    'select operation from service_platform_audit where audit_id > $1 order by operation',
    [auditId],
  )
  return rows.map((row) => row.operation)
}
