/** Endpoints for tests: their manifests, and requests to them. */
import type { EndpointManifest } from '../../src/value/http/routes.ts'
import type { TestGateway } from '../gateways.ts'

export function endpointManifest(
  name: string,
  more: Partial<EndpointManifest> & Pick<EndpointManifest, 'function'>,
): EndpointManifest {
  const base = {
    kind: 'endpoint',
    name,
    path: `/${name}`,
    maximumBytes: 100_000,
    origins: [],
  } as const
  return { ...base, methods: ['GET'], ...more }
}

interface Asked {
  readonly method?: string
  readonly headers?: Record<string, string>
  /** A value is sent as JSON, a text as it is. */
  readonly body?: unknown
}

export async function ask(
  { application }: Pick<TestGateway, 'application'>,
  path: string,
  { method = 'GET', headers = {}, body }: Asked = {},
): Promise<Response> {
  const request = new Request(`https://app.test/v1/http${path}`, {
    method,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  return application.fetch(request, { peer: 'peer' })
}
