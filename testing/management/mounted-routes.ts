/** Every route of the management origin, mounted before parts that fail the test when used. */
import { expect } from 'vitest'
import { type ManagementApp, managementRoutes } from '../../src/http/management/routes.ts'
import type { Identity } from '../../src/identity/identity.ts'
import type { BackupMaker } from '../../src/product/backups/backups.ts'
import type { ConsoleObjects } from '../../src/product/files/console-objects.ts'
import type { Files } from '../../src/product/files/files.ts'
import type { Logs } from '../../src/product/logs/logs.ts'
import type { Product } from '../../src/product/product.ts'
import { ConcurrencyLimit } from '../../src/system/concurrency.ts'
import type { System } from '../../src/system/system.ts'
import type { Logger } from '../../src/telemetry/log.ts'
import { Metrics } from '../../src/telemetry/metrics/metrics.ts'
import { type TestManagement, testManagement } from '../openapi/checked-origins.ts'
import { ENVIRONMENT_ID, PROJECT_ID } from '../operators.ts'

interface MountedParts {
  readonly identity: Identity
  readonly system: System
  readonly log: { readonly log: Logger }
}

/** Mounts the routes with parts that no request may reach, except the identity. */
export function mountedRoutes(
  { identity, system, log: { log } }: MountedParts,
  openApiDocument = '{}',
): TestManagement {
  // The route reads the number of places before the request.
  const publications = new ConcurrencyLimit(1, 'PRODUCT_UNAVAILABLE')
  return testManagement<ManagementApp>({
    app: {
      identity,
      sessions: identity,
      managementOrigin: null,
      linkableEnvironments: async () => [],
      openApiDocument: () => openApiDocument,
      environment: { projectId: PROJECT_ID, environmentId: ENVIRONMENT_ID },
      product: unused<Product>('Product', { publications }),
      metrics: new Metrics(system),
      logs: unused<Logs>('log'),
      files: unused<Files>('files'),
      objects: unused<ConsoleObjects>('objects'),
      backups: unused<BackupMaker>('backups'),
      backupDownloads: { open: 0 },
      objectUploads: new ConcurrencyLimit(1, 'PRODUCT_UNAVAILABLE'),
      health: () => expect.unreachable('the health was read'),
      doctor: () => expect.unreachable('the doctor was run'),
    },
    system,
    log,
    routes: managementRoutes,
  })
}

function unused<T extends object>(part: string, known: Partial<T> = {}): T {
  return new Proxy(known as T, {
    get: (target, name) =>
      Reflect.get(target, name) ?? expect.unreachable(`${part}: ${String(name)} was used`),
  })
}
