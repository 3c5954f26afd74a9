/**
 * 32 clients promote, roll back and set the serving policy, the configuration and the Environment
 * at random on the compiled server while it is killed. Afterwards every resource has the history of
 * one that changed by compare-and-set, and every operation returns its first result.
 *
 * SVC_SEED repeats the random choices of the clients. Their interleaving depends on the machine, so
 * a failed run also writes its evidence into a file.
 *
 * @module-tag slow
 */
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SEED } from '../../testing/seeds.ts'
import { ANSWERING_PROCESSES } from '../../testing/servers/server-process.ts'
import { check } from './checker.ts'
import { type Run, runLifecycle } from './driver.ts'
import { findOutcome } from './outcomes.ts'

const LONG = process.env.SVC_TEST_LONG === '1'
const [CHANGES, BETWEEN_KILLS] = LONG ? [6_000, 200] : [120, 40]
// Each kill is followed by the start of ANSWERING_PROCESSES and their runners.
const MILLIS_MAX = (LONG ? 3_600_000 : 600_000) * ANSWERING_PROCESSES
const FINDINGS_SHOWN = 10

test('resources change by compare-and-set', { timeout: MILLIS_MAX }, async () => {
  const seed = `SVC_SEED=${SEED}`
  const run = await runLifecycle({
    seed: SEED,
    changes: CHANGES,
    changesBetweenKills: BETWEEN_KILLS,
  })
  const counts = count(run)
  console.info(`${seed}: ${JSON.stringify(counts)}`)
  const findings = check(run.evidence)
  if (findings.length > 0) {
    const file = join(tmpdir(), `svc-lifecycle-${SEED}.json`)
    writeFileSync(file, JSON.stringify(run.evidence))
    console.error(`${seed}: the evidence is in ${file}`)
  }
  expect(findings.map(({ text }) => text).slice(0, FINDINGS_SHOWN), seed).toEqual([])
  // A run without conflicts, lost replies or replays would prove nothing.
  for (const [what, least] of Object.entries(LEAST)) {
    expect(counts[what as keyof typeof LEAST], `${what}, ${seed}`).toBeGreaterThanOrEqual(least)
  }
})

/** The least number of each kind of outcome: the run ends with a number of applied changes. */
const LEAST = {
  kills: 3,
  applied: 100,
  conflicts: 20,
  incompatible: 5,
  unanswered: 5,
  repeats: 100,
}

function count({ evidence, kills }: Run) {
  const outcomes = evidence.tracked.map(findOutcome)
  const attempts = evidence.tracked.flatMap((tracked) => tracked.attempts)
  const rejected = (code: string) =>
    outcomes.filter(({ rejections }) => rejections[0]?.reply?.text.includes(code) === true).length
  const applied = outcomes.filter(({ result }) => result !== null)
  return {
    kills,
    changes: outcomes.length,
    applied: applied.length,
    conflicts: rejected('PRODUCT_CAS_CONFLICT'),
    incompatible: rejected('PRODUCT_INCOMPATIBLE'),
    unanswered: attempts.filter(({ reply }) => reply === null).length,
    /** Applied by a request without a reply. */
    recovered: applied.filter(({ requestId }) => requestId === null).length,
    repeats: attempts.length - outcomes.length,
    reads: evidence.observed.length,
  }
}
