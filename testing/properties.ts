/** fast-check under the seed of the run: a failed property prints `SVC_SEED=<number>`. */
import fc from 'fast-check'
import { SEED } from './seeds.ts'

const isQuick = process.env.SVC_TEST_QUICK === '1'

fc.configureGlobal({
  seed: SEED,
  reporter(run) {
    if (!run.failed) return
    throw new Error(`SVC_SEED=${run.seed}: ${fc.defaultReportMessage(run)}`, {
      cause: run.errorInstance,
    })
  },
})

/** Number of inputs of a test: the given number, of which `npm test` has a fifth. */
export function inputs(count: number): number {
  return isQuick ? Math.ceil(count / 5) : count
}

export { fc }
