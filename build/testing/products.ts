/** Product roots, packages and actors for tests: real files, a real control database. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Actor } from '../../src/identity/actor.ts'
import type { ProductAudit } from '../../src/product/audit/audit-outbox.ts'
import { LiveConfiguration } from '../../src/product/configuration/live-configuration.ts'
import {
  closeProduct,
  openProduct,
  type Product,
  type ReleaseEngine,
} from '../../src/product/product.ts'
import { validate } from '../../src/product/releases/validate.ts'
import { type Authorized, type Published, publish } from '../../src/product/workspaces/publish.ts'
import { openProductRoot, type ProductRoot } from '../../src/storage/root.ts'
import { sha256 } from '../../src/system/digests.ts'
import { type System, TestSystem } from '../../src/system/system.ts'
import { type MemoryLog, memoryLog } from '../../src/telemetry/log.ts'
import { canonicalJson } from '../../src/value/canonical-json.ts'
import { type Capability, capabilitiesOfRole } from '../../src/value/capabilities.ts'
import { IdFactory, type ProjectId, type RequestId } from '../../src/value/ids.ts'
import type { FunctionManifest, TableManifest } from '../../src/value/manifest.ts'
import {
  digestName,
  encodeArtifact,
  encodePackage,
} from '../../src/value/packages/workspace-package.ts'
import type { Json } from '../../src/value/strict-json.ts'
import { ENVIRONMENT_ID, makeRoot, PROJECT_ID } from './product-roots.ts'

const ids = new IdFactory(new TestSystem({ seed: 8 }))
/** Publishes and kills itself before the step that it is given the number of. */
export const DYING_PUBLISHER = join(
  import.meta.dirname,
  '../..',
  'build/testing/dying/publisher.ts',
)
/** Retires a Release, removes its bytes, and kills itself likewise. */
export const DYING_COLLECTOR = join(
  import.meta.dirname,
  '../..',
  'build/testing/dying/collector.ts',
)
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
    operator: { operatorId, operatorName, createdAtMicros: 0n, authorizationRevision: 1n },
    session: {
      sessionId,
      operatorId,
      deviceName: null,
      createdAtMicros: 0n,
      lastUsedAtMicros: 0n,
      accessExpiresAtMicros: 0n,
      refreshExpiresAtMicros: 0n,
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
}

/** The manifest as an object, to be bent by tests, and the artifact that it names. */
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
  }
  return { manifest, artifact }
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

/** An engine that finds in the code whatever the tests say. */
export class TestEngine implements ReleaseEngine {
  describe: ReleaseEngine['describe'] = async () => ({ functions: [], tables: [] })
  prepare: ReleaseEngine['prepare'] = async () => [
    { name: 'indexes_ready', outcome: 'passed', detail: 'built' },
  ]
  isWarm: ReleaseEngine['isWarm'] = () => true
  warm: ReleaseEngine['warm'] = async () => undefined
  retainOnly: ReleaseEngine['retainOnly'] = async () => 0
  whenIdle: ReleaseEngine['whenIdle'] = async () => undefined
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

/** For publications that nobody comes to forbid. */
export const AUTHORIZED: Authorized = async (commit) => commit()

/** Publishes onto the current HEAD and, if asked, validates. */
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
    const { functions = [], tables = [] } = input
    engine.describe = async () => ({ functions, tables }) as unknown as Json
    const { releaseId } = published
    await validate(product, actor, { releaseId, against: null, requestId: REQUEST_ID })
  }
  return published
}
