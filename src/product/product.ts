/**
 * One Product Environment: its root and what is kept in memory of it. Rules are functions over it;
 * they take the parts that they use.
 */
import type { LiveReleases, Release, ReleaseCode } from '../engine/releases/executable-release.ts'
import type { ReleaseCheck } from '../storage/control/releases.ts'
import type { ProductRoot } from '../storage/root.ts'
import { ConcurrencyLimit, SerialQueue, SingleFlight } from '../system/concurrency.ts'
import type { System } from '../system/system.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Json } from '../value/strict-json.ts'
import { ApplicationKeys } from './application-clients/application-keys.ts'
import { AuditOutbox, type AuditSink } from './audit/audit-outbox.ts'
import type { LiveConfiguration } from './configuration/live-configuration.ts'
import { Lifecycle } from './environments/lifecycle.ts'
import { ArtifactCollection } from './releases/artifact-collection.ts'
import { EngineCollection } from './releases/engine-collection.ts'
import { ReleaseCache } from './releases/release-cache.ts'
import { Serving } from './serving/serving.ts'
import type { SchemaEvidence } from './serving/serving-policy.ts'

/** What validation asks of the Function engine. */
export interface ReleaseEngine {
  /**
   * Loads the code inside the sandbox and answers what it says of itself, in the form of
   * WorkspaceDescription; nothing of it is trusted. FUNCTION_FAILED, whose violation is what the
   * code threw, and LIMIT_EXCEEDED blame the code for good, DEADLINE_EXCEEDED only for now, every
   * other Fault blames the server.
   */
  describe(code: ReleaseCode): Promise<Json>
  /**
   * Makes the documents ready for the Release: builds its indexes and compares its constraints with
   * what is stored. A failed check leaves other Releases as they were.
   */
  prepare(release: Release, tables?: ReadonlySet<string>): Promise<readonly ReleaseCheck[]>
  /** Whether the first call of the Release would wait for nothing. */
  isWarm(release: Release): boolean
  /** Makes it so. */
  warm(release: Release): Promise<void>
  /**
   * Lets go of what is held for all other Releases that no call is in flight of: runners, what was
   * prepared, and the indexes that none of those left declares; answers how many indexes. No other
   * may be prepared meanwhile. `again` is called when the last call of such a Release has ended.
   */
  retainOnly(live: LiveReleases, again: () => void): Promise<number>
  /** Resolves once no invocation is in flight. */
  whenIdle(): Promise<void>
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
  readonly keys: ApplicationKeys
  readonly audit: AuditOutbox
  readonly collection: ArtifactCollection
  readonly engineCollection: EngineCollection
  /** A publication holds up to 64 MiB of the disk, from the first byte of its body on. */
  readonly publications: ConcurrencyLimit
  /** Validations load code and build indexes: one at a time. */
  readonly validations: SerialQueue
  /** By revision of the desired policy: whoever may read compares up to 240 pairs of Releases. */
  readonly schemaEvidence: SingleFlight<bigint, SchemaEvidence>
}

const PUBLICATIONS_MAX = 4
const VALIDATIONS_MAX = 16

export interface ProductOptions {
  readonly system: System
  readonly log: Logger
  readonly root: ProductRoot
  readonly engine: ReleaseEngine
  readonly configuration: LiveConfiguration
  readonly auditSink: AuditSink
}

/**
 * Starts to load what the Channels serve, to deliver what the audit trail lacks and to remove what
 * no Release names.
 */
export function openProduct({ auditSink, ...options }: ProductOptions): Product {
  const { system, log, root, engine } = options
  const { control, artifacts, keyring } = root
  const releases = new ReleaseCache({ control, artifacts })
  const serving = new Serving({ system, log, control, releases, engine })
  const validations = new SerialQueue(VALIDATIONS_MAX)
  const product: Product = {
    ...options,
    releases,
    serving,
    lifecycle: new Lifecycle({ control, serving, engine }),
    keys: new ApplicationKeys({ system, log, control, keyring }),
    audit: new AuditOutbox({ system, log, control, sink: auditSink }),
    collection: new ArtifactCollection({ log, control, artifacts }),
    engineCollection: new EngineCollection({ log, control, artifacts, engine, validations }),
    publications: new ConcurrencyLimit(PUBLICATIONS_MAX),
    validations,
    schemaEvidence: new SingleFlight(),
  }
  product.lifecycle.start()
  product.audit.deliver()
  product.collection.collect()
  product.engineCollection.collect()
  return product
}

/** Ends what runs in the background, then gives the root back. No rule may run any more. */
export async function closeProduct(product: Product): Promise<void> {
  await product.serving.settled()
  await product.audit.close()
  await product.collection.close()
  await product.engineCollection.close()
  product.keys.close()
  product.root.close()
}
