/** Bounds how many runs of the doctor a server makes at the same time. */
import { ConcurrencyLimit } from '../../system/concurrency.ts'
import type { DoctorReport } from '../../wire/doctor/report.ts'

/** @limit Doctor: runs of the doctor at the same time in one server */
export const DOCTOR_RUNS_MAX = 1

type Run = (headers: Headers) => Promise<DoctorReport>

/** Returns a run that rejects with PRODUCT_UNAVAILABLE while another one is under way. */
export function boundedRuns(run: Run): Run {
  const runs = new ConcurrencyLimit(DOCTOR_RUNS_MAX, 'PRODUCT_UNAVAILABLE')
  return (headers) => runs.run(() => run(headers))
}
