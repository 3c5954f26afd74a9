/** The one Product Environment that a server composes: root, documents, engine, rules. */
import { join } from 'node:path'
import type { ServerConfiguration } from '../config/configuration.ts'
import { openSqliteDocuments } from '../documents/sqlite/stores.ts'
import { createEngine, type Engine } from '../engine/engine.ts'
import { createRunnerPool, type RunnerPool } from '../engine/runner-pool.ts'
import { deliverProductAudit } from '../identity/audit.ts'
import type { Identity } from '../identity/identity.ts'
import { closeProduct, openProduct, type Product } from '../product/product.ts'
import { runnerCommand } from '../runner/command.ts'
import { runnerSpawner } from '../runner/processes.ts'
import { openProductRoot } from '../storage/root.ts'
import type { System } from '../system/system.ts'
import type { Logger } from '../telemetry/log.ts'

export interface OpenEnvironment {
  readonly product: Product
  readonly engine: Engine
  /** Ends invocations, then gives the root back. */
  close(): Promise<void>
}

export interface EnvironmentOptions {
  readonly configuration: ServerConfiguration
  readonly rootPath: string
  readonly identity: Identity
  readonly system: System
  readonly log: Logger
}

/** Throws SERVER_PRODUCT_ROOT_*, SERVER_SANDBOX_UNAVAILABLE, PRODUCT_CORRUPT. */
export async function openEnvironment(options: EnvironmentOptions): Promise<OpenEnvironment> {
  const { configuration, rootPath, identity, system, log } = options
  const closers: (() => Promise<void>)[] = []
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).reverse()) await closer()
  }
  try {
    const root = await openProductRoot(rootPath, system)
    closers.push(async () => root.close())
    const store = await openSqliteDocuments(join(rootPath, 'documents.db'))
    closers.push(() => store.close())
    const pool = await startPool(configuration, system, log)
    closers.push(() => pool.close())
    const engine = createEngine({ store, pool, system, log })
    closers.push(() => engine.close())
    const auditSink = deliverProductAudit.bind(null, identity)
    const product = openProduct({ system, log, root, engine, auditSink })
    closers.push(() => closeProduct(product))
    return { product, engine, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function startPool(
  { sandbox }: ServerConfiguration,
  system: System,
  log: Logger,
): Promise<RunnerPool> {
  const pool = createRunnerPool({ system, log, spawn: runnerSpawner(runnerCommand()) })
  await pool.start({ sandbox })
  return pool
}
