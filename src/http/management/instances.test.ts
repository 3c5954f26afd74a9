import { afterAll, beforeAll, expect, test } from 'vitest'
import { answer, ProductRoutes, rejection } from '../../../testing/product-routes.ts'
import type { HealthStatus } from '../../engine/usage/health.ts'
import { CAPABILITIES } from '../../value/capabilities.ts'
import { Health } from '../../wire/health.ts'

let routes: ProductRoutes

beforeAll(async () => {
  routes = await ProductRoutes.open()
})
afterAll(() => routes.harness.close())

const HEALTH = '/instances/healthz'

test.each<[HealthStatus, HealthStatus, HealthStatus]>([
  ['healthy', 'healthy', 'healthy'],
  ['degraded', 'healthy', 'degraded'],
  ['healthy', 'unavailable', 'unavailable'],
  ['degraded', 'unavailable', 'unavailable'],
])('the health of a %s runtime and %s documents is %s', async (runtime, documents, status) => {
  routes.components = [
    { name: 'runtime', status: runtime },
    { name: 'documents', status: documents },
  ]
  expect(await answer(routes.call('GET', HEALTH), 200, Health)).toEqual({
    version: 1,
    status,
    components: routes.components,
  })
})

test('the health of instances requires environments:read', async () => {
  routes.capabilities = CAPABILITIES.filter((capability) => capability !== 'environments:read')
  await rejection(routes.call('GET', HEALTH), 403, 'PLATFORM_ACCESS_DENIED')
  routes.capabilities = CAPABILITIES
})
