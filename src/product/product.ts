/**
 * Composition of one Product Environment: its root and the parts in memory. Rules are functions
 * over the ports that they declare; no rule and no part imports this file.
 */
import type { Engine } from '../engine/engine.ts'
import type { SchedulerHost } from '../engine/scheduling/scheduler.ts'
import { isRetired } from '../storage/control/releases.ts'
import type { ProductRoot } from '../storage/root.ts'
import { ConcurrencyLimit, SerialQueue, SingleFlight } from '../system/concurrency.ts'
import { DEFAULT_PLAN, type MemoryPlan } from '../system/memory/memory-plan.ts'
import type { System } from '../system/system.ts'
import type { Logger } from '../telemetry/log.ts'
import { ApplicationKeys } from './application-clients/key-verification.ts'
import { AuditOutbox, type AuditSink } from './audit/audit-outbox.ts'
import { HeldAudits } from './audit/held-audits.ts'
import type { SchemaEvidence } from './compatibility/schema-evidence.ts'
import type { LiveConfiguration } from './configuration/live-configuration.ts'
import { CronsInForce } from './crons/crons-in-force.ts'
import { DeclaredFields } from './data-admin/declared-fields.ts'
import { Lifecycle } from './environments/lifecycle.ts'
import { MountDirectory } from './http-mounts/mount-directory.ts'
import { OPERATOR_INVOCATIONS_MAX } from './invocations/invocations.ts'
import { ArtifactCollection } from './releases/artifact-collection.ts'
import { EngineCollection } from './releases/engine-collection.ts'
import { ReleaseCache } from './releases/release-cache.ts'
import { type ServedTargets, Serving } from './serving/serving.ts'

/** The methods of the Function engine that the Product calls. */
export type ReleaseEngine = Pick<
  Engine,
  | 'administration'
  | 'query'
  | 'mutation'
  | 'action'
  | 'replay'
  | 'describe'
  | 'prepare'
  | 'isWarm'
  | 'warm'
  | 'markServed'
  | 'trim'
  | 'retainOnly'
  | 'whenIdle'
> & {
  readonly migrations: Pick<
    Engine['migrations'],
    | 'act'
    | 'cancelOthers'
    | 'dryRun'
    | 'find'
    | 'isComplete'
    | 'unfinishedOf'
    | 'wake'
    | 'whenStopped'
  >
  readonly scheduler: Pick<
    Engine['scheduler'],
    'pendingOf' | 'list' | 'cancel' | 'wake' | 'crons' | 'deliveries' | 'find' | 'rerun'
  >
}

export interface Product {
  readonly system: System
  readonly log: Logger
  readonly root: ProductRoot
  readonly engine: ReleaseEngine
  readonly configuration: LiveConfiguration
  readonly releases: ReleaseCache
  readonly serving: Serving
  readonly lifecycle: Lifecycle
  readonly crons: CronsInForce
  readonly keys: ApplicationKeys
  readonly httpMounts: MountDirectory
  readonly audit: AuditOutbox
  readonly heldAudits: HeldAudits
  readonly declaredFields: DeclaredFields
  readonly collection: ArtifactCollection
  readonly engineCollection: EngineCollection
  /**
   * Limits the disk space of publications: each holds up to 64 MiB from the first byte of its body.
   */
  readonly publications: ConcurrencyLimit
  /** Limits the Functions that operators run. */
  readonly invocations: ConcurrencyLimit
  /** Serializes validations, which load code and build indexes. */
  readonly validations: SerialQueue
  /**
   * The evidence by the revision of the desired policy. It is cached, because a read compares up to
   * 240 pairs of Releases.
   */
  readonly schemaEvidence: SingleFlight<bigint, SchemaEvidence>
}

/** Packages that arrive at once; they hold up to 256 MiB of the disk together. */
const PUBLICATIONS_MAX = 4
/** Validations that wait. A further one is rejected with PRODUCT_UNAVAILABLE. */
const VALIDATIONS_MAX = 16

export interface ProductOptions {
  readonly system: System
  readonly log: Logger
  readonly root: ProductRoot
  readonly engine: ReleaseEngine
  readonly configuration: LiveConfiguration
  readonly auditSink: AuditSink
  /** See `CronsInForceOptions.channel`. */
  readonly cronsChannel?: string | undefined
  /** Called after each change of the served Releases. */
  readonly onServed?: ((changes: number, served: ServedTargets) => void) | undefined
  readonly memory?: MemoryPlan | undefined
}

/**
 * Opens the Product. In the background it loads the Releases that the Channels serve, delivers
 * pending audit records and removes artifacts that no Release references.
 */
export function openProduct({
  auditSink,
  cronsChannel,
  onServed,
  memory = DEFAULT_PLAN,
  ...options
}: ProductOptions): Product {
  const { system, log, root, engine } = options
  const { control, artifacts, keyring } = root
  const releases = new ReleaseCache({ control, artifacts, bytesMax: memory.releaseBytes })
  const crons = new CronsInForce({ log, control, releases, engine, channel: cronsChannel })
  const onChange = () => {
    crons.follow()
    onServed?.(serving.changes, serving.served())
  }
  const serving = new Serving({ system, log, control, releases, engine, onChange })
  const audit = new AuditOutbox({ system, log, control, sink: auditSink })
  const validations = new SerialQueue(VALIDATIONS_MAX, 'PRODUCT_UNAVAILABLE')
  const product: Product = {
    ...options,
    releases,
    serving,
    crons,
    lifecycle: new Lifecycle({ control, serving, engine }),
    keys: new ApplicationKeys({ system, log, control, keyring }),
    httpMounts: new MountDirectory(root),
    audit,
    heldAudits: new HeldAudits({ system, control, audit }),
    declaredFields: new DeclaredFields(root),
    collection: new ArtifactCollection({ log, control, artifacts }),
    engineCollection: new EngineCollection({ log, control, artifacts, engine, validations }),
    publications: new ConcurrencyLimit(PUBLICATIONS_MAX, 'PRODUCT_UNAVAILABLE'),
    invocations: new ConcurrencyLimit(OPERATOR_INVOCATIONS_MAX, 'BUSY'),
    validations,
    schemaEvidence: new SingleFlight(),
  }
  product.lifecycle.start()
  product.crons.follow()
  product.audit.deliver()
  product.collection.collect()
  product.engineCollection.collect()
  return product
}

/** Returns the parts of the Product that scheduled work and migrations need. */
export function schedulerHost({
  root,
  releases,
  lifecycle,
}: Pick<Product, 'root' | 'releases' | 'lifecycle'>): SchedulerHost {
  return {
    load: (releaseId) => releases.load(releaseId),
    admits: () => lifecycle.isActive,
    isRetired: (releaseId) => root.control.read((reader) => isRetired(reader, releaseId)),
  }
}

/** Stops the background tasks, then closes the root. No rule may be called afterwards. */
export async function closeProduct(product: Product): Promise<void> {
  await stopProduct(product)
  product.root.close()
}

/**
 * Stops the background tasks. The root stays open, because closing the documents records their last
 * sequence in it.
 */
export async function stopProduct(product: Product): Promise<void> {
  await product.serving.whenIdle()
  await product.crons.close()
  await product.audit.close()
  await product.collection.close()
  await product.engineCollection.close()
  product.keys.close()
}
