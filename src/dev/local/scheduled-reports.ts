/** Reports Crons and scheduled work, as `svc dev` shows them. */
import type { DevelopmentEvent } from '../../client/development/events.ts'
import type { ScheduledChange } from '../../engine/commits/read-set.ts'
import type { Engine } from '../../engine/engine.ts'
import { dueAtOf, stateOf } from '../../engine/scheduled-work/scheduled-documents.ts'
import { cronTimes } from '../../engine/scheduling/crons/cron-times.ts'
import type { CronsInForce } from '../../product/crons/crons-in-force.ts'
import type { LoadedRelease } from '../../product/ports.ts'
import type { System } from '../../system/system.ts'
import { timesText } from '../../value/scheduling/crons.ts'

type Due = Extract<DevelopmentEvent, { event: 'due' }>
type CronsEvent = Extract<DevelopmentEvent, { event: 'crons' }>

export interface ScheduledReportOptions {
  readonly scheduler: Pick<Engine['scheduler'], 'listen' | 'crons'>
  readonly crons: Pick<CronsInForce, 'whenIdle'>
  readonly system: Pick<System, 'nowMicros'>
  readonly report: (event: DevelopmentEvent) => void
}

export class ScheduledReports {
  readonly #options: ScheduledReportOptions
  /** Names, times and Functions of the last report. */
  #reported = '[]'

  constructor(options: ScheduledReportOptions) {
    this.#options = options
    options.scheduler.listen((changes) => {
      for (const due of dueOf(changes)) options.report(due)
    })
  }

  /** Reports the Crons of the served Release if they differ from those of the last report. */
  async follow({ manifest }: Pick<LoadedRelease, 'manifest'>): Promise<void> {
    const { scheduler, crons, system, report } = this.#options
    const declared = manifest.crons ?? []
    const shown = declared.map((cron) => [cron.name, timesText(cron), cron.function])
    const text = JSON.stringify(shown)
    if (text === this.#reported) return
    this.#reported = text
    await crons.whenIdle()
    const { nextTimes } = scheduler.crons
    const items = declared.map((cron): CronsEvent['crons'][number] => {
      const next = nextTimes.get(cron.name) ?? cronTimes(cron).after(system.nowMicros(), null)
      const { name, function: callee } = cron
      const nextRunAtMicros = next === null ? null : String(next)
      return { name, function: callee, times: timesText(cron), nextRunAtMicros }
    })
    report({ event: 'crons', crons: items })
  }

  /** Adds the next time to the event of a Cron's run. */
  completed(event: DevelopmentEvent): DevelopmentEvent {
    if (event.event !== 'ran' || event.cron === null) return event
    const next = this.#options.scheduler.crons.nextTimes.get(event.cron)
    return { ...event, nextRunAtMicros: next === undefined ? null : String(next) }
  }
}

/** Returns one event for each Function with scheduled calls or further attempts. */
function dueOf(changes: readonly ScheduledChange[]): Iterable<Due> {
  const found = new Map<string, Due>()
  for (const { scheduledId, before, after } of changes) {
    if (after === null || stateOf(after) !== 'pending') continue
    // A delivery of another service runs at once.
    const isNew = before === null && after.get('cron') === null && after.get('source') !== 'http'
    const isRepeated = before !== null && stateOf(before) === 'running'
    if (!isNew && !isRepeated) continue
    const name = after.get('function') as string
    const dueAt = dueAtOf(after)
    const known = found.get(name)
    const isFirst = known === undefined || dueAt < BigInt(known.dueAtMicros)
    const first = isFirst ? { scheduledId, dueAtMicros: String(dueAt) } : {}
    const base = known ?? { event: 'due', function: name, count: 0, scheduledId, dueAtMicros: '' }
    found.set(name, { ...base, ...first, count: base.count + 1 })
  }
  return found.values()
}
