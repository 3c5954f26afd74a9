/** Crons for operators: their declarations, their activation, and manual runs. */
import type { Engine } from '../../engine/engine.ts'
import { cronTimes } from '../../engine/scheduling/crons/cron-times.ts'
import { Fault } from '../../errors/fault.ts'
import type { Actor } from '../../identity/actor.ts'
import { findCronActivation, putCronActivation } from '../../storage/control/cron-activations.ts'
import { findEnvironment } from '../../storage/control/environment.ts'
import type { OperationId, ReleaseId, RequestId } from '../../value/ids.ts'
import type { CronManifest } from '../../value/manifest.ts'
import type { Activation } from '../../value/scheduling/crons.ts'
import type { CronActivated } from '../../wire/crons.ts'
import {
  type Applied,
  applyOnce,
  type Intent,
  isApplied,
} from '../idempotency/idempotency-records.ts'
import type { ChangePorts, ReleasesPort, RootPort } from '../ports.ts'
import { notFound, stateConflict } from '../resource-faults.ts'
import {
  failingAsProduct,
  operationMicros,
  type WorkState,
  workState,
} from '../schedules/scheduled-work.ts'
import { locateTarget } from '../targets.ts'
import type { CronsInForce } from './crons-in-force.ts'

interface CronsPort {
  readonly crons: Pick<CronsInForce, 'channel' | 'findRelease'>
  readonly engine: { readonly scheduler: Pick<Engine['scheduler'], 'crons'> }
}

interface ReadPorts extends RootPort, ReleasesPort, CronsPort {}
export interface CronPorts extends ChangePorts, ReleasesPort, CronsPort {}

/** Stored as JSON with its idempotency record, so revisions and times are decimal text. */
export type CronItem = Omit<CronActivated, 'version' | 'operation'>

export interface CronList {
  readonly releaseId: ReleaseId
  readonly crons: readonly CronItem[]
}

export interface ActivateInput {
  readonly operationId: OperationId
  readonly name: string
  readonly activation: Activation
  readonly expectedRevision: bigint
  readonly changedAtMicros: bigint
  readonly requestId: RequestId
}

/**
 * Lists the Crons of a target; for null, those in force. Rejects with PRODUCT_INVALID,
 * PRODUCT_NOT_FOUND, PRODUCT_RELEASE_RETIRED, PRODUCT_UNAVAILABLE and PRODUCT_CORRUPT.
 */
export async function listCrons(ports: ReadPorts, target: string | null): Promise<CronList> {
  const inForce = ports.root.control.read((reader) => ports.crons.findRelease(reader))
  const releaseId = target === null ? inForce : locateTarget(ports, target)
  if (releaseId === null) {
    const rule = `left out where a policy or the Channel ${ports.crons.channel} has a Release`
    throw notFound({ path: 'target', rule, detail: 'nothing is served' })
  }
  const { manifest } = await ports.releases.load(releaseId)
  const { crons } = ports.engine.scheduler
  const states = await failingAsProduct(() => crons.states())
  const items = ports.root.control.read((reader) =>
    (manifest.crons ?? []).map((cron) => {
      const { revision, activation } = findCronActivation(reader, cron.name)
      const lastRunAtMicros = states.get(cron.name)?.lastRunAtMicros ?? null
      const isRunning =
        releaseId === inForce &&
        activation === 'enabled' &&
        findEnvironment(reader)!.lifecycle === 'active'
      // Until the scheduler has planned the Cron, the stored time is the next one.
      const nextRunAtMicros =
        crons.nextTimes.get(cron.name) ?? states.get(cron.name)?.nextAtMicros ?? null
      return itemOf(cron, {
        revision,
        activation,
        lastRunAtMicros,
        nextRunAtMicros: isRunning ? nextRunAtMicros : null,
      })
    }),
  )
  return { releaseId, crons: items }
}

/**
 * Enables or disables a Cron in force, also for later Releases. An enabled Cron waits for its next
 * time. Once a disable resolves, no further run is scheduled. Rejects with PRODUCT_CAS_CONFLICT,
 * PRODUCT_NOT_FOUND, PRODUCT_OPERATION_REUSED, PRODUCT_INVALID and PRODUCT_UNAVAILABLE.
 */
export async function activateCron(
  ports: CronPorts,
  actor: Actor,
  { operationId, requestId, changedAtMicros, ...fields }: ActivateInput,
): Promise<Applied<CronItem>> {
  const { name, activation, expectedRevision } = fields
  const { crons } = ports.engine.scheduler
  const isRepeat = isApplied(ports, operationId)
  const cron = isRepeat ? null : await findInForce(ports, name)
  const states = isRepeat ? null : await failingAsProduct(() => crons.states())
  const intent = {
    operationId,
    kind: activation === 'enabled' ? 'cron.enable' : 'cron.disable',
    request: { ...fields, expectedRevision: String(expectedRevision) },
    changedAtMicros,
    subject: name,
    requestId,
  } as const
  const applied = applyOnce(ports, actor, intent, (tx) => {
    if (cron === null) throw unknownCron(name)
    const current = findCronActivation(tx, name).revision
    if (current !== expectedRevision) {
      throw new Fault('PRODUCT_CAS_CONFLICT', { detail: `revision ${current}` })
    }
    const revision = current + 1n
    putCronActivation(tx, name, { revision, activation }, changedAtMicros)
    const next = cronTimes(cron).after(ports.system.nowMicros(), null)
    const result = itemOf(cron, {
      revision,
      activation,
      lastRunAtMicros: states?.get(name)?.lastRunAtMicros ?? null,
      nextRunAtMicros: activation === 'enabled' ? next : null,
    })
    return { result, revision }
  })
  if (!applied.operation.replayed) crons.wake()
  await crons.whenIdle()
  return applied
}

export interface RunCronInput {
  readonly operationId: OperationId
  readonly name: string
  readonly requestId: RequestId
}

/**
 * Schedules an immediate run of a Cron that is in force, even of a disabled one. Rejects with
 * PRODUCT_STATE_CONFLICT while its newest run has not ended, and with the errors of `activateCron`.
 */
export async function runCron(
  ports: CronPorts,
  actor: Actor,
  { operationId, name, requestId }: RunCronInput,
): Promise<Applied<WorkState>> {
  const { crons } = ports.engine.scheduler
  // The ID of the work has the digits of the Operation ID, so that a repeat finds the work even if
  // the record was not stored.
  const scheduledId = `sch_${operationId.slice('opn_'.length)}`
  const changedAtMicros = operationMicros(ports, operationId)
  const run = isApplied(ports, operationId)
    ? null
    : await failingAsProduct(() => crons.run(name, scheduledId))
  if (run?.kind === 'unknown') throw unknownCron(name)
  if (run?.kind === 'taken') throw new Fault('PRODUCT_OPERATION_REUSED')
  if (run?.kind === 'busy') {
    const rule = 'a Cron whose newest run has ended'
    throw stateConflict({ path: 'cron', rule, detail: `${name} has an unfinished run` })
  }
  const intent: Intent = {
    operationId,
    kind: 'cron.run' as const,
    request: { name },
    changedAtMicros,
    subject: name,
    requestId,
  }
  return applyOnce(ports, actor, intent, (tx) => {
    if (run?.kind !== 'scheduled') throw unknownCron(name)
    return { result: workState(run.work), revision: findCronActivation(tx, name).revision }
  })
}

async function findInForce(ports: ReadPorts, name: string): Promise<CronManifest | null> {
  const releaseId = ports.root.control.read((reader) => ports.crons.findRelease(reader))
  if (releaseId === null) return null
  const { manifest } = await ports.releases.load(releaseId)
  return manifest.crons?.find((cron) => cron.name === name) ?? null
}

function itemOf(
  { name, schedule, timeZone, everyMillis, function: callee, overlap }: CronManifest,
  state: {
    readonly revision: bigint
    readonly activation: Activation
    readonly lastRunAtMicros: bigint | null
    readonly nextRunAtMicros: bigint | null
  },
): CronItem {
  const text = (micros: bigint | null) => (micros === null ? null : String(micros))
  return {
    name,
    schedule,
    timeZone,
    function: callee,
    overlap,
    every: everyMillis === null ? null : { milliseconds: everyMillis },
    revision: String(state.revision),
    activation: state.activation,
    lastRunAtMicros: text(state.lastRunAtMicros),
    nextRunAtMicros: text(state.nextRunAtMicros),
  }
}

function unknownCron(name: string): Fault {
  return notFound({ path: 'cron', rule: 'a Cron that is in force', detail: name })
}
