/** Both origins over one real identity database, one real Product and one engine, in process. */

import type { Backups } from '../../src/backups/service/backups.ts'
import { type ManagementApp, managementRoutes } from '../../src/http/management/routes.ts'
import { openApiText } from '../../src/http/openapi/published.ts'
import { requestCounts } from '../../src/http/request-counts.ts'
import { ConsoleObjects } from '../../src/product/files/console-objects.ts'
import { functionStorage, SIGNED_DOWNLOADS_PATH } from '../../src/product/files/function-storage.ts'
import { issueUpload } from '../../src/product/files/uploads.ts'
import type { Product } from '../../src/product/product.ts'
import { ConcurrencyLimit } from '../../src/system/concurrency.ts'
import { realSystem } from '../../src/system/system.ts'
import { HOOK_ARGUMENTS, type HttpRouteManifest } from '../../src/value/http/routes.ts'
import type { CronManifest, TableManifest } from '../../src/value/manifest.ts'
import { DeclaredFailure, type TestHandler } from '../engine/in-process-pool.ts'
import { openTestGateway, type TestGateway } from '../gateways.ts'
import { openTestLogs } from '../logs.ts'
import { openTestBackups } from '../management/backups.ts'
import { migrationHandler, migrationManifest } from '../migrations/in-process-migrations.ts'
import { functionManifest } from '../products.ts'
import { type ExternalLogins, externalLogins, MANAGED_TOKEN } from '../providers/external-logins.ts'
import { PROVIDER } from '../providers/identity-providers.ts'
import type { Sample } from './arbitrary-requests.ts'
import { testManagement } from './checked-origins.ts'
import type { DocumentedOperation } from './contract.ts'
import { EVERY_CRON, EVERY_FUNCTION, EVERY_ROUTE, EVERY_TABLE } from './every-option.ts'

const callable = { clients: ['confidential', 'public'], returns: { type: 'any' } } as const

const failing = {
  ...callable,
  arguments: { code: { type: 'string' } },
  errors: {
    CONFLICT: 'conflict',
    FORBIDDEN: 'forbidden',
    INVALID: 'invalid',
    NOT_FOUND: 'not_found',
  },
} as const

/** One Function of each kind that succeeds, and one that fails with the code in its arguments. */
export const FUNCTIONS = [
  functionManifest('echo.action', {
    ...callable,
    kind: 'action',
    uses: { network: [], secrets: [] },
  }),
  functionManifest('echo.mutation', { ...callable, kind: 'mutation' }),
  functionManifest('echo.plain', { ...callable, compress: false }),
  functionManifest('echo.query', callable),
  functionManifest('every.delivery', {
    kind: 'mutation',
    visibility: 'internal',
    clients: [],
    arguments: HOOK_ARGUMENTS,
  }),
  EVERY_FUNCTION,
  // Functions that fail with the code in their arguments.
  functionManifest('fail.action', {
    ...failing,
    kind: 'action',
    uses: { network: [], secrets: [] },
  }),
  functionManifest('fail.mutation', { ...failing, kind: 'mutation' }),
  functionManifest('fail.query', failing),
]

const KINDS_OF_FAILURE = [
  ['INVALID', 400],
  ['FORBIDDEN', 403],
  ['NOT_FOUND', 404],
  ['CONFLICT', 409],
] as const

/** Each way in which the failing Function can fail. */
export const DECLARED_FAILURES = ['query', 'mutation', 'action'].flatMap((name) =>
  KINDS_OF_FAILURE.map(([code, status]) => ({ name, code, status })),
)

export const CRONS: readonly CronManifest[] = EVERY_CRON
export const ROUTES: readonly HttpRouteManifest[] = [EVERY_ROUTE]

export interface Origins {
  readonly logins: ExternalLogins
  readonly gateway: TestGateway
  readonly product: Product
  readonly backups: Backups
  /** Makes the grant that uploads show from then on; returns its ID. */
  grantUpload(): Promise<string>
  /** Makes the grant of the file, which downloads show from then on. */
  grantDownload(fileId: string): void
  /** Returns the token of a signed URL of the file. */
  signDownload(fileId: string): string
  send(operation: DocumentedOperation, sample: Sample): Promise<Response>
  close(): Promise<void>
}

/** The tables of every Release of the origins. */
export const TABLES: readonly TableManifest[] = [
  EVERY_TABLE,
  { name: 'notes', fields: { body: { type: 'string' } }, indexes: [] },
]
const nativeClient = {
  authorizationEndpoint: 'https://idp.test/authorize',
  tokenEndpoint: 'https://idp.test/token',
  clientId: 'svc',
  scopes: ['openid'],
  resource: null,
}

const UPLOAD = {
  bucket: 'default',
  key: null,
  contentType: 'text/plain',
  maximumBytes: 10,
  expiresInSeconds: 600,
  releaseId: 'rel_01JZ0000000000000000000000',
}
const DOWNLOAD = { expiresInSeconds: 600, fileName: null }

const echo = () => 'done'
const fail: TestHandler = (_, { code }) => {
  throw new DeclaredFailure(code as string)
}
const TABLE = { table: TABLES[0]!.name }
export const MIGRATIONS = [migrationManifest('addPriority', TABLE)]

const HANDLERS = {
  ...migrationHandler('addPriority', () => null),
  'echo.action': echo,
  'echo.mutation': echo,
  'echo.plain': echo,
  'echo.query': echo,
  'every.delivery': echo,
  'every.option': echo,
  'fail.action': fail,
  'fail.mutation': fail,
  'fail.query': fail,
}

export async function openOrigins(): Promise<Origins> {
  const logins = await externalLogins({ oidc: { ...PROVIDER, nativeClient } })
  const gateway = await openTestGateway({
    functions: FUNCTIONS,
    tables: TABLES,
    crons: CRONS,
    migrations: MIGRATIONS,
    http: ROUTES,
    handlers: HANDLERS,
  })
  const { product } = gateway.harness
  const logs = await openTestLogs()
  logs.log.info('server.ready')
  await logs.store.flushed()
  const grants = grantsOf(gateway)
  const developmentKey = gateway.issueKey('development')
  const backups = openTestBackups(gateway, { identity: logins.identity.database })
  const management = managementOf({ logins, gateway, logs: logs.logs, backups })
  const authorities: Record<string, () => Promise<[string, string]>> = {
    operator: async () => ['authorization', `Bearer ${logins.owner.accessToken}`],
    externalIdentity: async () => ['authorization', `Bearer ${await logins.token()}`],
    managedSource: async () => ['service-managed-enrollment', `Bearer ${MANAGED_TOKEN}`],
    applicationKey: async () => ['x-service-key', gateway.key],
    developmentKey: async () => ['x-service-key', developmentKey],
    ...grants.authorities,
  }
  return {
    logins,
    gateway,
    product,
    backups,
    grantUpload: () => grants.upload(),
    grantDownload: (fileId) => grants.download(fileId),
    signDownload: (fileId) => grants.signed(fileId),
    async send(operation, sample) {
      const shown = Object.keys(operation.security[0] ?? {}).map((name) => authorities[name]!())
      const headers = new Headers(await Promise.all(shown))
      for (const [name, value] of Object.entries(sample.headers)) headers.set(name, value)
      const { body } = sample
      if (body !== null && !headers.has('content-type')) {
        headers.set('content-type', operation.body!.mediaType)
      }
      const bytes = body instanceof Uint8Array ? body : JSON.stringify(body)
      const request = new Request(`http://svc.test${urlOf(operation, sample)}`, {
        method: operation.method,
        headers,
        ...(body !== null && { body: bytes as BodyInit }),
      })
      return operation.elsewhere ? gateway.application.fetch(request) : management.fetch(request)
    },
    async close() {
      await backups.close()
      await gateway.close()
      await logs.dispose()
      await logins.dispose()
    },
  }
}

interface ManagementParts {
  readonly logins: ExternalLogins
  readonly gateway: TestGateway
  readonly logs: ManagementApp['logs']
  readonly backups: Backups
}

/** Mounts the management origin over the Product of the gateway. */
function managementOf({ logins, gateway, logs, backups }: ManagementParts) {
  const { product, root } = gateway.harness
  return testManagement<ManagementApp>({
    app: {
      identity: logins.identity,
      sessions: logins.identity,
      managementOrigin: 'https://manage.example.com',
      linkableEnvironments: async () => [],
      openApiDocument: openApiText,
      environment: root.descriptor,
      product,
      metrics: gateway.metrics,
      logs,
      health: () => gateway.engine.health(),
      doctor: async () => ({
        version: 1,
        checks: [
          { name: 'clock-steps', status: 'ok', seen: 'none', why: 'Schedules.', command: null },
          { name: 'user', status: 'warning', seen: 'root', why: 'Files.', command: 'id' },
        ],
      }),
      files: gateway.files,
      objects: new ConsoleObjects({ root, files: gateway.files, heldAudits: product.heldAudits }),
      objectUploads: new ConcurrencyLimit(1, 'PRODUCT_UNAVAILABLE'),
      backups,
      backupDownloads: { open: 0 },
    },
    system: logins.system,
    log: logins.log.log,
    counts: requestCounts(gateway.metrics, 'management'),
    routes: managementRoutes,
  })
}

/** Makes grants, and shows the newest of each kind. */
function grantsOf({ files }: TestGateway) {
  const tokens = { upload: '', download: '' }
  const bearer = (kind: 'upload' | 'download') => async (): Promise<[string, string]> => {
    return ['authorization', `Bearer ${tokens[kind]}`]
  }
  return {
    authorities: { uploadGrant: bearer('upload'), downloadGrant: bearer('download') },
    async upload(): Promise<string> {
      const { uploadId, token } = await issueUpload(files, UPLOAD)
      tokens.upload = token
      return uploadId
    },
    download(fileId: string): void {
      const request = { fileId, nowMicros: realSystem().nowMicros(), ...DOWNLOAD }
      tokens.download = functionStorage(() => files).issueDownload(request).token
    },
    signed(fileId: string): string {
      const request = { fileId, nowMicros: realSystem().nowMicros(), ...DOWNLOAD, inline: true }
      return functionStorage(() => files)
        .signDownload(request)
        .path.slice(SIGNED_DOWNLOADS_PATH.length)
    },
  }
}

function urlOf({ path }: DocumentedOperation, { params, query }: Sample): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name]!))
  const search = new URLSearchParams(query.map(([name, value]) => [name, value])).toString()
  return search === '' ? filled : `${filled}?${search}`
}
