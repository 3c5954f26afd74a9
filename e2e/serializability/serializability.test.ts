/**
 * Strict serializability on the compiled server: transactions of 32 clients over
 * HTTP and of operators who replace the same documents, while
 * runners, the server and the store are killed. The history has no anomaly, equals the model in the
 * order of the sequences, and respects real time.
 *
 * SVC_SEED repeats the workload and the faults of a run. The interleaving of the clients depends on
 * the machine, so a failed run also writes its history into a file.
 *
 * @module-tag slow
 */
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SEED } from '../../testing/seeds.ts'
import { check, summarize } from './checker.ts'
import { RERUNS_MIN, type Run, type RunOptions, runWorkload } from './driver.ts'
import { describe } from './history.ts'
import { compareWithModel, compareWithTime } from './oracle.ts'

const LONG = process.env.SVC_TEST_LONG === '1'
/** The short run on PostgreSQL is for restarts of the store: SQLite covers everything else. */
const SHORT = { sqlite: 600, postgres: 300 }
/** Maximum number of findings of each kind that are printed. */
const FINDINGS_SHOWN = 10
const MILLIS_MAX = LONG ? 3_600_000 : 900_000

test.each([
  ['SQLite', 'sqlite'],
  ['PostgreSQL', 'postgres'],
] as const)(
  'a history on %s is strictly serializable',
  { timeout: MILLIS_MAX },
  async (_, store) => {
    const transactions = Number(
      process.env.SVC_TEST_TRANSACTIONS ?? (LONG ? 100_000 : SHORT[store]),
    )
    const kills = Math.ceil(transactions / 2_500)
    // Few enough: for ten seconds after a runner died, each runner takes one call at a time.
    const runners = 1 + Math.ceil(transactions / 5_000)
    const faults = { runners, servers: kills, stores: store === 'sqlite' ? 0 : kills }
    await prove({ store, seed: SEED, transactions, faults })
  },
)

async function prove(options: RunOptions): Promise<void> {
  const run = await runWorkload(options)
  const seed = `SVC_SEED=${options.seed} SVC_TEST_TRANSACTIONS=${options.transactions}`
  console.info(`${options.store}, ${seed}: ${figures(run)}`)
  try {
    verify(run, seed)
  } catch (error) {
    const file = join(tmpdir(), `svc-history-${options.store}-${options.seed}.json`)
    writeFileSync(file, JSON.stringify(run.history))
    console.error(`${seed}: the history is in ${file}`)
    throw error
  }
  expect(run.replacements, seed).toBeGreaterThan(0)
  expect(run.conflicts, seed).toBeGreaterThan(0)
  expect(run.faults, seed).toEqual({ ...options.faults, servers: options.faults.servers + 1 })
}

/** Reports every kind of finding, since one can explain another. */
function verify({ history, failures }: Run, seed: string): void {
  const pending = history.filter(({ outcome }) => outcome === 'unknown').map(describe)
  const lists = [compareWithModel(history), compareWithTime(history), failures, pending]
  const findings = lists.flatMap((list) => list.slice(0, FINDINGS_SHOWN))
  expect([summarize(check(history)), ...findings].join('\n'), seed).toBe('no anomaly')
  const reruns = history.filter(({ attempts }) => attempts > 1)
  expect(reruns.length, seed).toBeGreaterThanOrEqual(RERUNS_MIN)
}

function figures({ history, faults, repeats, replays, millis, ...run }: Run): string {
  const count = (test: (each: Run['history'][number]) => boolean) => history.filter(test).length
  const reruns = history.reduce((sum, { attempts }) => sum + attempts - 1, 0)
  return [
    `${history.length} transactions in ${(millis / 1000).toFixed(1)} s`,
    `${count(({ commitSequence }) => commitSequence !== null)} commits`,
    `${count(({ kind }) => kind === 'query')} queries`,
    `${count(({ outcome }) => outcome === 'aborted')} aborted`,
    `${reruns} reruns of ${count(({ attempts }) => attempts > 1)} mutations`,
    `${repeats} repeats, ${replays} replays`,
    `${run.replacements} replacements by operators, ${run.conflicts} conflicts`,
    `kills: ${faults.runners} runners, ${faults.servers} servers, ${faults.stores} stores`,
  ].join('; ')
}
