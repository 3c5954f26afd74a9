/** Compares the deliveries of another service with Mutations that have the same effect. */
import { randomBytes } from 'node:crypto'
import { hmac } from '../../src/system/digests.ts'
import { type Figure, inTurns, type Measured, type MeasureOptions } from '../figure.ts'
import type { BenchInstallation } from '../installation.ts'
import { type LoadResult, load } from '../load.ts'
import { CONNECTIONS } from './calls.ts'
import { loadMutations, runsOf } from './scheduling.ts'

const SECRET = randomBytes(32).toString('base64url')
/** The highest rate of a mount. */
const RATE = '10000'
const POLL_MILLIS = 200

let next = 1

export const HOOKS: readonly Figure[] = [
  deliveries('deliveries to a hook, handled', 'digested'),
  deliveries('deliveries to a hook with once, handled', 'named'),
]

function deliveries(name: string, route: 'digested' | 'named'): Figure {
  return {
    name,
    baseline: 'the same Mutation, called, 64 in flight',
    ratioMin: 0.7,
    documents: 'sqlite',
    measure: (installation, options) => measureDeliveries(installation, route, options),
  }
}

async function measureDeliveries(
  installation: BenchInstallation,
  route: 'digested' | 'named',
  options: MeasureOptions,
): Promise<Measured> {
  const secret = ['--secret', '--value-env', 'BENCH_SECRET', '--remote']
  await installation.svc(['config', 'set', 'BENCH_WEBHOOK', ...secret], { BENCH_SECRET: SECRET })
  const target = ['--target', 'channel:production', '--rate', RATE, '--remote']
  await installation.svc(['http', 'mount', 'bench', ...target])
  return inTurns(
    {
      candidate: (seconds) => loadDeliveries(installation, route, seconds),
      baseline: (seconds) => loadMutations(installation.application, seconds),
    },
    options,
  )
}

/**
 * Delivers events. The rate is that of the runs of the handler until the end of the load: a service
 * that is only accepted quickly would leave them behind.
 */
export async function loadDeliveries(
  installation: BenchInstallation,
  route: 'digested' | 'named',
  seconds: number,
): Promise<LoadResult> {
  const { application } = installation
  const before = await runsOf(installation)
  const startedMillis = performance.now()
  const result = await load({
    port: application.port,
    path: `/v1/http/bench/${route}`,
    headers: { accept: 'application/json', 'content-type': 'application/json' },
    connections: CONNECTIONS,
    seconds,
    body: () => JSON.stringify({ number: next++ }),
    signature: (body) => `x-hub-signature-256: sha256=${hmac('sha256', SECRET, body).toHex()}`,
  })
  const after = await runsOf(installation)
  const perSecond = ((after - before) * 1_000) / (performance.now() - startedMillis)
  await whenHandled(installation, after)
  return { ...result, perSecond: Math.min(perSecond, result.perSecond) }
}

/** Waits until the runs that the load has left behind have ended. */
async function whenHandled(installation: BenchInstallation, runs: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, POLL_MILLIS))
  const now = await runsOf(installation)
  if (now > runs) await whenHandled(installation, now)
}
