/**
 * Answered, therefore visible: with several application processes, every call sees what any of them
 * has answered before the call was sent, and what the management origin has answered.
 *
 * SVC_SEED repeats the random choices of the clients. Their interleaving depends on the machine.
 *
 * @module-tag slow
 */
import { expect, test } from 'vitest'
import { SEED } from '../../testing/seeds.ts'
import { checkVisibility } from './visibility.ts'

const LONG = process.env.SVC_TEST_LONG === '1'
const ROUNDS = LONG ? 40 : 1
const FINDINGS_SHOWN = 10

test.each(['sqlite', 'postgres'] as const)(
  'what one process has answered is visible to the next call of each process on %s',
  { timeout: LONG ? 1_200_000 : 300_000 },
  async (store) => {
    const seed = `SVC_SEED=${SEED}`
    const { findings, ...counts } = await checkVisibility({ store, seed: SEED, rounds: ROUNDS })
    console.info(`${store}, ${seed}: ${JSON.stringify(counts)}`)
    expect(findings.slice(0, FINDINGS_SHOWN).join('\n'), seed).toBe('')
    // Calls that met one process alone would prove nothing.
    expect(counts.crossReads, seed).toBeGreaterThan(100)
    expect(counts.crossStates, seed).toBeGreaterThan(10)
    expect(counts.checks, seed).toBeGreaterThan(50)
  },
)
