/**
 * Live Queries on the compiled server: hundreds of subscribers with random Queries receive states
 * while Mutations commit, Releases are promoted, connections are lost, readers are slow, and
 * runners, the server and the store are killed. Every state, whole or made by patches, is the
 * result of its Query at its snapshot, recomputed from the commits, and no subscriber ends behind.
 *
 * SVC_SEED repeats the workload, the Queries and the faults of a run; SVC_TEST_TRANSACTIONS sets
 * the number of its Mutations.
 *
 * @module-tag slow
 */
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SEED } from '../../testing/seeds.ts'
import { check } from './checker.ts'
import { type Run, type RunOptions, runWorkload } from './driver.ts'

const LONG = process.env.SVC_TEST_LONG === '1'
const FINDINGS_SHOWN = 10
const SIZE = LONG
  ? { subscribers: 500, mutations: 1_000, promotions: 6, kills: 4 }
  : { subscribers: 20, mutations: 120, promotions: 2, kills: 1 }
/** The short run covers what all stores share. */
const STORES = [['SQLite', 'sqlite'] as const, ['PostgreSQL', 'postgres'] as const]

test.each(LONG ? STORES : STORES.slice(0, 1))(
  'every state on %s is the result of its Query at its snapshot',
  // Only a hang takes this long.
  { timeout: LONG ? 1_200_000 : 600_000 },
  async (_, store) => {
    const { kills, ...size } = SIZE
    const mutations = Number(process.env.SVC_TEST_TRANSACTIONS ?? size.mutations)
    const stores = store === 'sqlite' ? 0 : kills
    await prove({
      ...size,
      store,
      seed: SEED,
      mutations,
      faults: { runners: 1, servers: kills, stores },
    })
  },
)

async function prove(options: RunOptions): Promise<void> {
  const run = await runWorkload(options)
  const seed = `SVC_SEED=${options.seed}`
  console.info(`${options.store}, ${seed}: ${figures(run)}`)
  const findings = [...run.failures, ...check(run.history)]
  if (findings.length > 0) {
    const file = join(tmpdir(), `svc-live-states-${options.store}-${options.seed}.json`)
    writeFileSync(file, JSON.stringify(run.history))
    console.error(`${seed}: ${findings.length} findings; the history is in ${file}`)
  }
  expect(findings.slice(0, FINDINGS_SHOWN).join('\n'), seed).toBe('')
  expect(run.faults, seed).toEqual(options.faults)
  expect(run.promotions, seed).toBeGreaterThan(0)
  // A run without parts would prove less. Whether a pause fills the buffers depends on the machine.
  expect(run.counts.parts, seed).toBeGreaterThan(0)
  expect(run.counts.patches, seed).toBeGreaterThan(0)
}

function figures({ history, counts, faults, promotions, millis }: Run): string {
  const { commits, watches } = history
  return [
    `${watches.length} subscriptions on ${counts.connections} connections`,
    `${commits.length} commits in ${(millis / 1000).toFixed(1)} s`,
    `${counts.states} states, ${counts.parts} of them parts and ${counts.patches} patches`,
    `${counts.slowResyncs} resyncs of slow readers, ${promotions} promotions`,
    `kills: ${faults.runners} runners, ${faults.servers} servers, ${faults.stores} stores`,
  ].join('; ')
}
