/** Runs changes of identity that lose their connection at each message of the protocol in turn. */
import { Database } from '../../src/database/database.ts'
import type { IdentityCore } from '../../src/identity/core.ts'
import { Secret } from '../../src/value/secret.ts'
import { type CutPoint, postgresProxy } from '../databases/postgres-proxy.ts'
import { rejectionCode, type TestIdentity } from '../identity.ts'

export type Change = (core: IdentityCore) => Promise<unknown>

export interface Loss {
  /** Number of the message among those of the change, from 1. */
  readonly message: number
  readonly point: CutPoint
  /** True if the message is the last one, which commits. */
  readonly last: boolean
  readonly where: string
}

/** Injects lost connections into changes. */
export interface LossInjector {
  /**
   * Returns the losses that the change can meet: every one in the long run, otherwise those of its
   * last message and every third of the others. Runs it once without a loss to find them.
   */
  lossesOf(change: Change): Promise<readonly Loss[]>
  /** Runs the change with the loss. Returns the code of its Fault; `none` if it succeeds. */
  inject(change: Change, loss: Loss): Promise<string>
  close(): Promise<void>
}

/** Messages that have a response, Sync and Query. The response can be lost too. */
const WITH_RESPONSE = ['S', 'Q']
const STRIDE = process.env.SVC_TEST_LONG === '1' ? 1 : 3
const POINTS: readonly CutPoint[] = ['before', 'after', 'within-answer']

export async function lossInjector(fixture: TestIdentity): Promise<LossInjector> {
  const proxy = await postgresProxy(fixture.url)
  const { system, credentials } = fixture.identity
  /** Runs the change on one new connection. `arm` is called after its settings are made. */
  const through = async (change: Change, arm: () => void): Promise<string> => {
    const database = new Database({ url: new Secret(proxy.url), connectionsMax: 1 })
    try {
      await database.rows('select 1')
      arm()
      return await rejectionCode(change({ database, system, credentials }))
    } finally {
      await database.close()
    }
  }
  return {
    lossesOf: async (change) => {
      let stop: () => readonly string[] = () => []
      await through(change, () => {
        stop = proxy.record()
      })
      const types = stop()
      const all = types.flatMap((type, i) =>
        (WITH_RESPONSE.includes(type) ? POINTS : POINTS.slice(0, 1)).map((point) => ({
          message: i + 1,
          point,
          last: i + 1 === types.length,
          where: `message ${i + 1} of ${types.length} (${type}), ${point}`,
        })),
      )
      return all.filter(({ last }, i) => last || i % STRIDE === 0)
    },
    inject: async (change, { message, point }) => {
      const { cuts } = proxy
      const code = await through(change, () => proxy.cutAtMessage(message, point))
      if (proxy.cuts !== cuts + 1) throw new Error(`no connection was cut at message ${message}`)
      return code
    },
    close: () => proxy.close(),
  }
}

export async function lastAudit(fixture: TestIdentity): Promise<string> {
  const rows = await fixture.sql<{ last: string | null }>(
    'select max(audit_id) as last from service_platform_audit',
  )
  return rows[0]?.last ?? ''
}

/** Returns the audit operations after `auditId`, sorted. The clock must have advanced since. */
export async function recordsSince(fixture: TestIdentity, auditId: string): Promise<string[]> {
  const rows = await fixture.sql<{ operation: string }>(
    'select operation from service_platform_audit where audit_id > $1 order by operation',
    [auditId],
  )
  return rows.map((row) => row.operation)
}
