/**
 * Runs native attacks inside contained runners of a real pool and prints, as JSON, how each ended.
 * A program of its own, so that a test can run it as another user than root.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { RunnerOutcome } from '../src/engine/calls/outcomes.ts'
import type { NativeAttack } from './hostile/native-runner.ts'
import { oneDocument, poolBench } from './runners.ts'

export interface AttackRequest extends NativeAttack {
  /** True to wait until the attack holds its amount, false until the runner was terminated. */
  readonly until: 'held' | 'terminated'
}

export interface AttackReport extends NativeAttack {
  readonly outcome: RunnerOutcome['kind']
  /** The amount that the attack held; null if it was stopped before. */
  readonly held: number | null
  /** The reason in the log for which the runner was terminated; null if it was not. */
  readonly terminated: string | null
}

const NATIVE_RUNNER = new URL('./hostile/native-runner.ts', import.meta.url).pathname
/** CPU limits of the tests. Those of the server take minutes to reach. */
const BRIEF = { callCpuMillis: 200, loadCpuMillis: 2_000, unexplainedCpuMillis: 500 }
/** Memory is filled with CPU time, of which a slow machine needs a multiple. */
const PATIENT = { ...BRIEF, callCpuMillis: 60_000, unexplainedCpuMillis: 60_000 }
/** Only a hang takes this long: a busy machine gives runners, which have a low priority, little. */
const WAIT_MILLIS = 240_000
const POLL_MILLIS = 20

async function run({ until, ...attack }: AttackRequest): Promise<AttackReport> {
  const { pool, log, release, call } = poolBench({
    command: [process.execPath, NATIVE_RUNNER],
    limits: attack.attack.endsWith('Memory') ? PATIENT : BRIEF,
  })
  const argumentsText = JSON.stringify(attack)
  const invoked = pool.invoke(release(''), call('attack', { argumentsText }), oneDocument)
  const logged = (form: RegExp) => {
    const texts = log.records().map(({ message }) => form.exec(message)?.[1])
    return texts.find((text) => text !== undefined) ?? null
  }
  let held: string | null = null
  let terminated: string | null = null
  for (let waited = 0; waited < WAIT_MILLIS; waited += POLL_MILLIS) {
    await delay(POLL_MILLIS)
    held = logged(/ holds (\d+)$/)
    terminated = logged(/^A runner exceeded its limit: (.*)\.$/)
    if (terminated !== null || (until === 'held' && held !== null)) break
  }
  await pool.close()
  const { kind: outcome } = await invoked
  return { ...attack, outcome, held: held === null ? null : Number(held), terminated }
}

if (import.meta.main) {
  const attacks = JSON.parse(process.argv[2]!) as readonly AttackRequest[]
  const reports: AttackReport[] = []
  for (const attack of attacks) reports.push(await run(attack))
  process.stdout.write(JSON.stringify(reports))
  process.exit(0)
}
