/** The routes of buckets over a real Product, documents and bytes, on a real listener. */

import { MANAGEMENT_CODES } from '../../src/http/errors.ts'
import type { BucketsApp } from '../../src/http/management/buckets/app.ts'
import { bucketRoutes } from '../../src/http/management/buckets/buckets.ts'
import { isObjectRequest, objectRoutes } from '../../src/http/management/buckets/objects.ts'
import { storageKeyRoutes } from '../../src/http/management/buckets/storage-keys.ts'
import { ConsoleObjects } from '../../src/product/files/console-objects.ts'
import { openListener } from '../../src/server/listeners.ts'
import { ConcurrencyLimit } from '../../src/system/concurrency.ts'
import { realSystem } from '../../src/system/system.ts'
import { type MemoryLog, memoryLog } from '../../src/telemetry/log.ts'
import { openTestGateway, type TestGateway } from '../gateways.ts'
import { testManagement } from '../openapi/checked-origins.ts'
import { unstoredSessions } from '../operators.ts'
import { ENVIRONMENT_ID, PROJECT_ID } from '../product-roots.ts'
import { actorWith } from '../products.ts'

export interface Console {
  readonly gateway: TestGateway
  readonly objects: ConsoleObjects
  readonly log: MemoryLog
  /** host:port. */
  readonly address: string
  /** Path of the Environment. */
  readonly base: string
  readonly token: string
  /** Sends a request of JSON or of bytes; a new Operation ID unless one is given. */
  call(method: string, path: string, options?: ConsoleCall): Promise<Response>
  /** The body of a response with this status. */
  json<T = Record<string, never>>(status: number, pending: Promise<Response>): Promise<T>
  now(): string
  operation(): string
  close(): Promise<void>
}

export interface ConsoleCall {
  readonly body?: object | Uint8Array<ArrayBuffer> | ReadableStream
  readonly headers?: Record<string, string>
  readonly operationId?: string
}

const TOKEN = `rk_at_v1_${'a'.repeat(43)}`
export const CONSOLE_BASE = `/v1/projects/${PROJECT_ID}/environments/${ENVIRONMENT_ID}`

export async function openConsole(): Promise<Console> {
  const log = memoryLog()
  const gateway = await openTestGateway({ functions: [], tables: [], handlers: {}, log: log.log })
  const { root, product, system } = gateway.harness
  const { files } = gateway
  await files.usage.whenCounted()
  const objects = new ConsoleObjects({ root, files, heldAudits: product.heldAudits })
  const objectUploads = new ConcurrencyLimit(16, 'PRODUCT_UNAVAILABLE')
  const actor = actorWith()
  const sessions = unstoredSessions(async () => actor)
  const hono = testManagement<BucketsApp>({
    app: { product, files, objects, objectUploads, environment: root.descriptor, sessions },
    system,
    log: log.log,
    routes: [...bucketRoutes, ...storageKeyRoutes, ...objectRoutes],
  })
  const listener = openListener({
    surface: 'management',
    listen: { host: '127.0.0.1', port: 0, loopback: true },
    app: { fetch: hono.fetch, answersHead: isObjectRequest },
    codes: MANAGEMENT_CODES,
    system: realSystem(),
    log: log.log,
    tlsTerminated: true,
  })
  const operation = () => system.ids.make('opn')
  return {
    gateway,
    objects,
    log,
    address: listener.address,
    base: CONSOLE_BASE,
    token: TOKEN,
    async call(method, path, { body, headers = {}, operationId = operation() } = {}) {
      const isBytes = body instanceof Uint8Array || body instanceof ReadableStream
      const type = isBytes || body === undefined ? {} : { 'content-type': 'application/json' }
      return fetch(`http://${listener.address}${CONSOLE_BASE}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${TOKEN}`,
          ...(method === 'GET' || method === 'HEAD' ? {} : { 'idempotency-key': operationId }),
          ...type,
          ...headers,
        },
        ...(body !== undefined && { body: isBytes ? (body as BodyInit) : JSON.stringify(body) }),
      })
    },
    async json<T>(status: number, pending: Promise<Response>) {
      const response = await pending
      const body = (await response.json()) as T
      if (response.status === status) return body
      throw new Error(`${response.status}: ${JSON.stringify(body)}`)
    },
    now: () => String(system.nowMicros()),
    operation,
    async close() {
      listener.cut()
      await gateway.close()
    },
  }
}
