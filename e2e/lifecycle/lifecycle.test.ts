/**
 * 32 clients promote, roll back, set the serving policy, the configuration and the Environment at
 * random on the compiled server while it is killed: afterwards every resource has the history of
 * one that changed by compare-and-set, and every operation answers what it answered first.
 *
 * SVC_SEED repeats what the clients draw. How they interleave is up to the machine, so a
 * failed run also leaves what it saw in a file.
 */
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SEED } from '../../build/testing/seeds.ts'
import { check } from './checker.ts'
import { type Run, runLifecycle } from './driver.ts'
import { outcomeOf } from './outcomes.ts'

const LONG = process.env.SVC_TEST_LONG === '1'
const [SECONDS, BETWEEN_KILLS] = LONG ? [300, 10] : [9, 3]
const FINDINGS_SHOWN = 10

test('a model of compare-and-set holds', { timeout: SECONDS * 1_000 + 300_000 }, async () => {
  const seed = `SVC_SEED=${SEED}`
  const run = await runLifecycle({
    seed: SEED,
    seconds: SECONDS,
    secondsBetweenKills: BETWEEN_KILLS,
  })
  const counts = count(run)
  console.info(`${seed}: ${JSON.stringify(counts)}`)
  const findings = check(run.evidence)
  if (findings.length > 0) {
    const file = join(tmpdir(), `svc-lifecycle-${SEED}.json`)
    writeFileSync(file, JSON.stringify(run.evidence))
    console.error(`${seed}: what was seen is in ${file}`)
  }
  expect(findings.map(({ text }) => text).slice(0, FINDINGS_SHOWN), seed).toEqual([])
  // A run in which nothing was lost, refused or replayed proves nothing.
  for (const [what, least] of Object.entries(LEAST)) {
    expect(counts[what as keyof typeof LEAST], `${what}, ${seed}`).toBeGreaterThanOrEqual(least)
  }
})

/** Of every kind of outcome, what even a slow machine comes to. */
const LEAST = {
  kills: 3,
  applied: 100,
  conflicts: 20,
  incompatible: 5,
  unanswered: 5,
  repeats: 100,
}

function count({ evidence, kills }: Run) {
  const outcomes = evidence.asked.map(outcomeOf)
  const attempts = evidence.asked.flatMap((asked) => asked.attempts)
  const refused = (code: string) =>
    outcomes.filter(({ refusals }) => refusals[0]?.reply?.text.includes(code) === true).length
  const applied = outcomes.filter(({ answer }) => answer !== null)
  return {
    kills,
    changes: outcomes.length,
    applied: applied.length,
    conflicts: refused('PRODUCT_CAS_CONFLICT'),
    incompatible: refused('PRODUCT_INCOMPATIBLE'),
    unanswered: attempts.filter(({ reply }) => reply === null).length,
    /** Applied by a request that nobody answered. */
    recovered: applied.filter(({ requestId }) => requestId === null).length,
    repeats: attempts.length - outcomes.length,
    reads: evidence.seen.length,
  }
}
