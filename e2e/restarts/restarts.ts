/** Restarts of the compiled server under calls, and what became of the calls. */
import { expect } from 'vitest'
import { application } from '../application.ts'
import { storedNumbers, writeEntries } from './entries.ts'
import { Load, type Report } from './load.ts'

/** Calls with results between two restarts. */
const CALLS_BETWEEN = 300

/** Expects that no caller sees an error and that each Mutation took effect exactly once. */
export async function restartUnderCalls(options: {
  readonly restarts: number
  readonly callsPerSecond: number
}): Promise<void> {
  const app = await application(writeEntries)
  try {
    const load = new Load(app, options.callsPerSecond)
    const restartMs: number[] = []
    for (let restart = 0; restart < options.restarts; restart++) {
      await load.untilAnswered(CALLS_BETWEEN)
      const begun = performance.now()
      await app.restart('stop')
      restartMs.push(Math.round(performance.now() - begun))
    }
    await load.untilAnswered(CALLS_BETWEEN)
    await load.stop()
    show(load.report, restartMs)
    expect(load.report.errors).toEqual([])
    expect(load.report.missed).toEqual([])
    // Otherwise no restart met a call.
    expect(Object.keys(load.report.retries)).not.toEqual([])
    const ascending = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)
    expect(ascending(await storedNumbers(app))).toEqual(ascending(load.report.added))
  } finally {
    await app.installation.dispose()
  }
}

function show({ answered, retries, slowestMs }: Report, restartMs: readonly number[]): void {
  const restarts = `restarts ${restartMs.join(', ')} ms`
  const calls = `${answered} calls, slowest ${Math.round(slowestMs)} ms`
  process.stdout.write(`${restarts}; ${calls}; retried ${JSON.stringify(retries)}\n`)
}
