/** fast-check under the seed of the run: a failed property prints `SVC_SEED=<number>`. */
import fc from 'fast-check'
import { SEED } from './seeds.ts'

fc.configureGlobal({
  seed: SEED,
  reporter(run) {
    if (!run.failed) return
    throw new Error(`SVC_SEED=${run.seed}: ${fc.defaultReportMessage(run)}`, {
      cause: run.errorInstance,
    })
  },
})

export { fc }
