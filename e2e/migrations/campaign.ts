/** A migration of the compiled server under calls, while the server is killed again and again. */
import { expect } from 'vitest'
import { type Application, application, fields, int64, mutation, query } from '../application.ts'
import { argv } from '../argv.ts'
import { CallLoad } from './call-load.ts'
import { writeTasks } from './tasks.ts'

export interface Campaign {
  readonly documents: number
  readonly callsPerSecond: number
  readonly killEveryMillis: number
  readonly killsMax: number
  /** Seconds of calls before the migration, for the comparison of durations. */
  readonly quietSeconds: number
  /** Pause between two looks at the progress, each of which starts a process. */
  readonly pollMillis: number
}

export interface Figures {
  /** Documents a second that one Mutation after the other rewrites, 500 in each. */
  readonly batchRate: number
  /** Documents a second of the migration while the server ran. */
  readonly migrationRate: number
  readonly kills: number
  /** Milliseconds of the slowest hundredth of the calls, before and during the migration. */
  readonly quietP99: number
  readonly busyP99: number
  readonly calls: number
}

/** Documents of one Mutation that fills or rewrites. */
const BATCH = 500
/** Documents that one Query counts. */
const TALLY = 5_000
/** Time after a restart for which calls are not measured: those that waited come at once. */
const SETTLE_MILLIS = 2_000

/** Expects that each document is passed exactly once and that no call fails. */
export async function runCampaign(campaign: Campaign): Promise<Figures> {
  const app = await application(writeTasks)
  try {
    await inBatches(app, campaign.documents, 'tasks.fill')
    const rewritten = Math.min(campaign.documents, 20_000)
    const rewriteMillis = await inBatches(app, rewritten, 'tasks.rewrite')
    const load = new CallLoad(app, campaign)
    load.start()
    const quietUntil = performance.now() + campaign.quietSeconds * 1_000
    while (performance.now() < quietUntil) {
      await Bun.sleep(campaign.pollMillis)
      // As during the migration: the process of the client takes its time from the calls.
      await statusOf(app)
    }
    const quietP99 = load.p99()
    const { kills, runMillis } = await migrate(app, campaign, load)
    const busyP99 = load.p99()
    await load.stop()
    expect(load.errors).toEqual([])
    expect(await tally(app, campaign.documents)).toEqual({
      found: campaign.documents,
      once: campaign.documents,
    })
    return {
      batchRate: Math.round((rewritten / rewriteMillis) * 1_000),
      migrationRate: Math.round((campaign.documents / runMillis) * 1_000),
      kills,
      quietP99,
      busyP99,
      calls: load.answered,
    }
  } finally {
    await app.installation.dispose()
  }
}

/** Runs the Mutation over all documents. Returns the milliseconds that it took. */
async function inBatches(app: Application, documents: number, name: string): Promise<number> {
  const begun = performance.now()
  for (let from = 0; from < documents; from += BATCH) {
    const count = Math.min(BATCH, documents - from)
    const range = { from: int64(from), count: int64(count) }
    const { status, body } = await mutation(app, { function: name, arguments: range })
    expect(status, JSON.stringify(body)).toBe(200)
  }
  return performance.now() - begun
}

/** Returns the number of kills, and the milliseconds for which the migration could run. */
async function migrate(
  app: Application,
  { documents, killEveryMillis, killsMax, pollMillis }: Campaign,
  load: CallLoad,
): Promise<{ readonly kills: number; readonly runMillis: number }> {
  await app.svc(argv`migrations run countPasses ${remote(app)}`)
  let kills = 0
  let runMillis = 0
  let sinceKill = performance.now()
  for (;;) {
    await Bun.sleep(pollMillis)
    // The status is not read before: a short migration might end meanwhile on a busy machine.
    const isDue = kills < killsMax && performance.now() - sinceKill >= killEveryMillis
    if (!isDue) {
      const { state, processed, changed } = await statusOf(app)
      if (state === 'running') continue
      const counts = [state, Number(processed), Number(changed)]
      expect(counts).toEqual(['complete', documents, documents])
      return { kills, runMillis: runMillis + performance.now() - sinceKill }
    }
    runMillis += performance.now() - sinceKill
    load.pauseMeasure()
    await app.restart('kill')
    sinceKill = performance.now()
    await Bun.sleep(SETTLE_MILLIS)
    load.resumeMeasure()
    kills += 1
  }
}

const remote = ({ installation }: Application) => argv`--remote --root ${installation.productRoot}`

function statusOf(app: Application) {
  return app.svc(argv`migrations status countPasses ${remote(app)}`)
}

async function tally(app: Application, documents: number) {
  const sum = { found: 0, once: 0 }
  for (let from = 0; from < documents; from += TALLY) {
    const range = { from: int64(from), count: int64(TALLY) }
    const { status, body } = await query(app, { function: 'tasks.tally', arguments: range })
    expect(status, JSON.stringify(body)).toBe(200)
    const { found, once } = fields(body.result)
    sum.found += Number(found.value)
    sum.once += Number(once.value)
  }
  return sum
}
