/** Products, packages and actors for tests, over real files and a real control database. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { indexKey } from '../src/documents/keys.ts'
import type { PhysicalIndex } from '../src/documents/store.ts'
import { prepareRelease } from '../src/engine/releases/prepared-release.ts'
import { indexDefinitions } from '../src/engine/tables/physical-indexes.ts'
import type { Actor } from '../src/identity/actor.ts'
import type { ProductAudit } from '../src/product/audit/audit-outbox.ts'
import { LiveConfiguration } from '../src/product/configuration/live-configuration.ts'
import type { Authorized } from '../src/product/ports.ts'
import {
  closeProduct,
  openProduct,
  type Product,
  type ReleaseEngine,
} from '../src/product/product.ts'
import { validate } from '../src/product/releases/validate.ts'
import { type Published, publish } from '../src/product/workspaces/publish.ts'
import { openProductRoot, type ProductRoot } from '../src/storage/root.ts'
import { sha256 } from '../src/system/digests.ts'
import { type System, TestSystem } from '../src/system/system.ts'
import { type MemoryLog, memoryLog } from '../src/telemetry/log.ts'
import { canonicalJson } from '../src/value/canonical-json.ts'
import { type Capability, capabilitiesOfRole } from '../src/value/capabilities.ts'
import type { HttpRouteManifest } from '../src/value/http/routes.ts'
import { IdFactory, type ProjectId, type RequestId } from '../src/value/ids.ts'
import type {
  CronManifest,
  FunctionManifest,
  MigrationManifest,
  TableManifest,
} from '../src/value/manifest.ts'
import {
  digestName,
  encodeArtifact,
  encodePackage,
} from '../src/value/packages/workspace-package.ts'
import { encodeStored } from '../src/value/stored.ts'
import type { Json } from '../src/value/strict-json.ts'
import type { ValueObject } from '../src/value/values.ts'
import { ENVIRONMENT_ID, makeRoot, PROJECT_ID } from './product-roots.ts'

const ids = new IdFactory(new TestSystem({ seed: 8 }))
/** A script that publishes a package and kills itself before its nth durable step. */
export const DYING_PUBLISHER = join(import.meta.dirname, '..', 'testing/dying/publisher.ts')
/** A script that retires a Release, removes its bytes, and kills itself before its nth step. */
export const DYING_COLLECTOR = join(import.meta.dirname, '..', 'testing/dying/collector.ts')
export const OTHER_PROJECT_ID = ids.make('prj')
export const REQUEST_ID: RequestId = ids.make('req')

export function actorWith(capabilities = capabilitiesOfRole('owner')): Actor {
  const scope = {
    kind: 'environment',
    projectId: PROJECT_ID,
    environmentId: ENVIRONMENT_ID,
  } as const
  const operatorId = ids.make('opr')
  const sessionId = ids.make('ops')
  const operatorName = 'tester'
  return {
    operatorId,
    operatorName,
    sessionId,
    purpose: null,
    operator: { operatorId, operatorName, createdAtMicros: 0n, authorizationRevision: 1n },
    session: {
      sessionId,
      operatorId,
      deviceName: null,
      createdAtMicros: 0n,
      lastUsedAtMicros: 0n,
      accessExpiresAtMicros: 0n,
      refreshExpiresAtMicros: 0n,
      derivation: null,
    },
    grants: [{ scope, capabilities: [...capabilities] as Capability[], source: 'bootstrap' }],
  }
}

export interface WorkspaceInput {
  readonly workspace?: string
  readonly projectId?: ProjectId
  readonly source?: string
  readonly functions?: readonly FunctionManifest[]
  readonly tables?: readonly TableManifest[]
  readonly crons?: readonly CronManifest[]
  readonly migrations?: readonly MigrationManifest[]
  readonly requires?: readonly string[]
  readonly http?: readonly HttpRouteManifest[]
}

/** Returns the manifest as an object, for tests to modify, and the artifact that it references. */
export function workspaceParts(input: WorkspaceInput = {}) {
  const artifact = encodeArtifact(
    { source: input.source ?? 'export {}', sourceMap: '{"version":3}' },
    sha256,
  )
  const manifest = {
    version: 1,
    projectId: input.projectId ?? PROJECT_ID,
    workspace: input.workspace ?? 'default',
    artifact: { digest: digestName(sha256(artifact)), bytes: artifact.length },
    functions: [...(input.functions ?? [])],
    tables: [...(input.tables ?? [])],
    ...(input.crons !== undefined && { crons: [...input.crons] }),
    ...optionalParts(input),
  }
  return { manifest, artifact }
}

function optionalParts({ migrations, requires, http }: WorkspaceInput) {
  return {
    ...(migrations !== undefined && { migrations: [...migrations] }),
    ...(requires !== undefined && { requires: [...requires] }),
    ...(http !== undefined && { http: [...http] }),
  }
}

export function makePackage(input: WorkspaceInput = {}): Uint8Array {
  const { manifest, artifact } = workspaceParts(input)
  return encodePackage({ manifest: canonicalJson(manifest as unknown as Json), artifact }, sha256)
}

export function functionManifest(name: string, more: Partial<FunctionManifest> = {}) {
  const base: FunctionManifest = {
    name,
    kind: 'query',
    visibility: 'public',
    clients: ['public'],
    auth: 'none',
    arguments: {},
    returns: { type: 'null' },
    errors: {},
  }
  return { ...base, ...more }
}

/** An engine without runners: tests set the description of the code and the stored documents. */
export class TestEngine implements ReleaseEngine {
  /** Stored documents by the name of their table. */
  readonly documents = new Map<string, readonly ValueObject[]>()
  /** Tables whose documents were checked, one list for each preparation. */
  readonly checkedTables: string[][] = []
  describe: ReleaseEngine['describe'] = async () => ({ functions: [], tables: [] })
  prepare: ReleaseEngine['prepare'] = async (release) => {
    const indexes = indexDefinitions(release.tables.values()).map(
      (definition, i): PhysicalIndex => ({ ...definition, id: i + 1, state: 'ready' }),
    )
    const checkedTables: string[] = []
    this.checkedTables.push(checkedTables)
    return {
      tables: prepareRelease(release, indexes).tables,
      scan: (index) => {
        if (index.fields.length === 0) checkedTables.push(index.table)
        return this.#scan(index)
      },
    }
  }
  /** Set by tests with a real engine; no other test reads or writes documents. */
  administration = undefined as unknown as ReleaseEngine['administration']
  /** Set by tests with a real engine; no other test runs Functions. */
  query = undefined as unknown as ReleaseEngine['query']
  mutation = undefined as unknown as ReleaseEngine['mutation']
  action = undefined as unknown as ReleaseEngine['action']
  replay = undefined as unknown as ReleaseEngine['replay']
  isWarm: ReleaseEngine['isWarm'] = () => true
  warm: ReleaseEngine['warm'] = async () => undefined
  /** The Releases that were last named as served. */
  served: ReadonlySet<string> = new Set()
  markServed: ReleaseEngine['markServed'] = (releases) => {
    this.served = releases
  }
  trim: ReleaseEngine['trim'] = () => undefined
  retainOnly: ReleaseEngine['retainOnly'] = async () => 0
  /** Unfinished scheduled work of any Release. */
  pendingWork: number | null = 0
  scheduler: ReleaseEngine['scheduler'] = {
    pendingOf: () => this.pendingWork,
    list: async () => ({ items: [], nextId: null }),
    cancel: async () => null,
    wake: () => undefined,
    find: async () => null,
    rerun: async () => null,
    deliveries: {
      list: async () => ({ items: [], nextId: null }),
    } as unknown as ReleaseEngine['scheduler']['deliveries'],
    crons: {
      follow: () => undefined,
      suspend: () => undefined,
      wake: () => undefined,
      whenIdle: async () => undefined,
      states: async () => new Map(),
      nextTimes: new Map(),
    } as unknown as ReleaseEngine['scheduler']['crons'],
  }
  /** Set by tests with a real engine; others have no migrations. */
  migrations: ReleaseEngine['migrations'] = {
    act: async () => ({ record: null, isAllowed: false }),
    dryRun: async () => [],
    find: async () => null,
    isComplete: async () => false,
    cancelOthers: async () => undefined,
    whenStopped: () => Promise.reject(new Error('no migration was started')),
    unfinishedOf: () => 0,
    wake: () => undefined,
  }
  whenIdle: ReleaseEngine['whenIdle'] = async () => undefined

  async *#scan(index: PhysicalIndex) {
    const stored = this.documents.get(index.table) ?? []
    const keyed = stored.map((fields, i) => {
      const identity = { id: `${index.table}_${i}`, createdAtMicros: BigInt(i) }
      const document = { ...identity, sequence: 1, text: encodeStored(fields) }
      return { key: indexKey(index, { ...identity, fields }), document }
    })
    for (const { document } of keyed.sort((a, b) => (a.key < b.key ? -1 : 1))) yield document
  }
}

export interface TestProduct {
  readonly product: Product
  readonly directory: string
  readonly system: System & Pick<TestSystem, 'advance'>
  readonly engine: TestEngine
  readonly log: MemoryLog
  readonly audited: ProductAudit[]
  readonly root: ProductRoot
  readonly actor: Actor
  close(): Promise<void>
}

/** Opens a new root unless `directory` names one; `close` removes it. */
export async function openTestProduct(
  options: { directory?: string; system?: TestSystem } = {},
): Promise<TestProduct> {
  const directory = options.directory ?? makeRoot()
  const system = options.system ?? new TestSystem()
  const engine = new TestEngine()
  const log = memoryLog(system)
  const audited: ProductAudit[] = []
  const root = await openProductRoot(directory, system)
  const auditSink = async (record: ProductAudit) => {
    audited.push(record)
  }
  const configuration = new LiveConfiguration(root)
  const product = openProduct({ system, log: log.log, root, engine, configuration, auditSink })
  return {
    product,
    directory,
    system,
    engine,
    log,
    audited,
    root,
    actor: actorWith(),
    async close() {
      await closeProduct(product)
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Authorizes every publication. */
export const AUTHORIZED: Authorized = async (commit) => commit()

/** Publishes onto the current HEAD; validates too, unless `validate` is false. */
export async function publishRelease(
  { product, engine, actor }: TestProduct,
  input: WorkspaceInput & { readonly validate?: boolean } = {},
): Promise<Published> {
  const head = product.root.control.read((reader) =>
    reader.get<{ revision_id: Published['revisionId'] }>(
      'select revision_id from workspaces where name = ?',
      input.workspace ?? 'default',
    ),
  )
  const published = await publish(product, actor, {
    frame: [makePackage(input)],
    expectedHead: head?.revision_id ?? 'empty',
    requestId: REQUEST_ID,
    authorized: AUTHORIZED,
  })
  if (input.validate !== false) {
    const { functions = [], tables = [], crons } = input
    const declared = { functions, tables, ...(crons !== undefined && { crons }) }
    const described = { ...declared, ...optionalParts(input) }
    engine.describe = async () => described as unknown as Json
    const { releaseId } = published
    await validate(product, actor, { releaseId, against: null, requestId: REQUEST_ID })
  }
  return published
}
