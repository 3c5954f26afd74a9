/** Metrics of the server process: memory, CPU time and event-loop delay. */
import type { System } from '../../system/system.ts'
import type { Metrics } from './metrics.ts'

const PERIOD_MILLIS = 50

/** Starts to measure the process. Returns a function that stops it. */
export function watchProcess(metrics: Metrics, clock: Pick<System, 'monotonicMillis'>): () => void {
  metrics.addSource(() => {
    const { rss, heapUsed } = process.memoryUsage()
    const { user, system } = process.cpuUsage()
    return {
      processResidentBytes: rss,
      processHeapBytes: heapUsed,
      processCpuMicros: user + system,
    }
  })
  const { eventLoopDelayMicros } = metrics.histograms
  let dueAt = clock.monotonicMillis() + PERIOD_MILLIS
  const timer = setInterval(() => {
    const now = clock.monotonicMillis()
    eventLoopDelayMicros.observe(Math.max(0, now - dueAt) * 1000)
    dueAt = now + PERIOD_MILLIS
  }, PERIOD_MILLIS)
  timer.unref()
  return () => clearInterval(timer)
}
