/** The lifecycle routes over a real Product, called in process by a test operator. */
import { expect } from 'vitest'
import type { ComponentHealth } from '../src/engine/usage/health.ts'
import { Fault } from '../src/errors/fault.ts'
import { applicationClientRoutes } from '../src/http/management/application-clients.ts'
import { catalogRoutes } from '../src/http/management/catalogs.ts'
import { channelRoutes } from '../src/http/management/channels.ts'
import { configurationRoutes } from '../src/http/management/configuration.ts'
import { environmentRoutes } from '../src/http/management/environments.ts'
import { httpMountRoutes } from '../src/http/management/http-mounts.ts'
import { type InstancesApp, instanceRoutes } from '../src/http/management/instances.ts'
import { type MetricsApp, metricsRoutes } from '../src/http/management/metrics.ts'
import type { ProductApp } from '../src/http/management/product-app.ts'
import { workspaceRoutes } from '../src/http/management/publish.ts'
import { releaseRoutes } from '../src/http/management/releases.ts'
import type { Route } from '../src/http/management/route.ts'
import { servingPolicyRoutes } from '../src/http/management/serving-policy.ts'
import { statusRoutes } from '../src/http/management/status.ts'
import { requestCounts } from '../src/http/request-counts.ts'
import { Metrics } from '../src/telemetry/metrics/metrics.ts'
import { CAPABILITIES, type Capability } from '../src/value/capabilities.ts'
import { PACKAGE_MEDIA_TYPE } from '../src/value/packages/workspace-package.ts'
import { read } from '../src/wire/reading/read.ts'
import type { Schema } from '../src/wire/schema.ts'
import { type TestManagement, testManagement } from './openapi/checked-origins.ts'
import { unstoredSessions } from './operators.ts'
import { ENVIRONMENT_ID, PROJECT_ID } from './product-roots.ts'
import { actorWith, openTestProduct, type TestProduct } from './products.ts'

type App = ProductApp & InstancesApp & MetricsApp

export const ROUTES: readonly Route<App>[] = [
  ...environmentRoutes,
  ...statusRoutes,
  ...workspaceRoutes,
  ...releaseRoutes,
  ...channelRoutes,
  ...servingPolicyRoutes,
  ...catalogRoutes,
  ...configurationRoutes,
  ...applicationClientRoutes,
  ...httpMountRoutes,
  ...instanceRoutes,
  ...metricsRoutes,
] as readonly Route<App>[]
export const BASE = `/v1/projects/${PROJECT_ID}/environments/${ENVIRONMENT_ID}`
export const JSON_TYPE = 'application/json'
const TOKEN = `rk_at_v1_${'a'.repeat(43)}`

export interface Call {
  readonly body?: unknown
  readonly headers?: Record<string, string>
  readonly token?: string | null
  readonly base?: string
}

export class ProductRoutes {
  readonly harness: TestProduct
  capabilities: readonly Capability[] = CAPABILITIES
  readonly metrics: Metrics
  /** The health that the engine reports. */
  components: readonly ComponentHealth[] = []
  /** The doctor of the server. */
  doctor: InstancesApp['doctor'] = async () => ({ version: 1, checks: [] })
  readonly #hono: TestManagement

  private constructor(harness: TestProduct) {
    this.harness = harness
    this.metrics = new Metrics(harness.system)
    this.#hono = testManagement<App>({
      app: {
        product: harness.product,
        metrics: this.metrics,
        health: async () => this.components,
        doctor: (headers) => this.doctor(headers),
        environment: harness.root.descriptor,
        sessions: unstoredSessions(async (token) => {
          if (token === TOKEN) {
            return { ...harness.actor, grants: actorWith(this.capabilities).grants }
          }
          throw new Fault('PLATFORM_AUTHENTICATION_FAILED')
        }),
      },
      system: harness.system,
      log: harness.log.log,
      routes: ROUTES,
      counts: requestCounts(this.metrics, 'management'),
    })
  }

  static async open(): Promise<ProductRoutes> {
    return new ProductRoutes(await openTestProduct())
  }

  async call(method: string, path: string, options: Call = {}): Promise<Response> {
    const { body, headers = {}, token = TOKEN, base = BASE } = options
    const raw = body instanceof Uint8Array || body instanceof ReadableStream
    return this.#hono.request(base + path, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': raw ? PACKAGE_MEDIA_TYPE : JSON_TYPE }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: raw ? (body as BodyInit) : JSON.stringify(body) }),
    })
  }

  publish(frame: Uint8Array | ReadableStream, head: string, headers: Record<string, string> = {}) {
    const all = { 'x-service-expected-head': head, ...headers }
    return this.call('POST', '/workspace/publish', { body: frame, headers: all })
  }
}

/** Returns the body of a response with this status, which must match the schema exactly. */
export async function answer<T>(pending: Promise<Response>, status: number, schema: Schema<T>) {
  const response = await pending
  const body: unknown = await response.json()
  expect([response.status, body]).toEqual([status, body])
  expect(response.headers.get('cache-control')).toContain('no-store')
  return read(schema, body, 'PLATFORM_INTERNAL')
}

export async function rejection(pending: Promise<Response>, status: number, code: string) {
  const response = await pending
  const body = (await response.json()) as { error: { code: string; violations?: unknown } }
  expect([response.status, body.error.code]).toEqual([status, code])
  expect(response.headers.get('cache-control')).toBe('no-store')
  return body.error
}
