import { afterAll, beforeAll, expect, test } from 'vitest'
import { answer, ProductRoutes, rejection } from '../../../testing/product-routes.ts'
import type { HealthStatus } from '../../engine/usage/health.ts'
import { CAPABILITIES } from '../../value/capabilities.ts'
import { DoctorReport } from '../../wire/doctor/report.ts'
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

const DOCTOR = '/instances/doctor'

test('the doctor answers with its checks, and sees the headers of the request', async () => {
  const checks = [
    { name: 'clock-steps', status: 'ok', seen: 'none', why: 'Expiry.', command: null },
  ] as const
  const seen: (string | null)[] = []
  routes.doctor = async (headers) => {
    seen.push(headers.get('x-forwarded-for'))
    return { version: 1, checks: [...checks] }
  }
  const response = routes.call('GET', DOCTOR, { headers: { 'x-forwarded-for': '203.0.113.7' } })
  expect(await answer(response, 200, DoctorReport)).toEqual({ version: 1, checks })
  expect(seen).toEqual(['203.0.113.7'])
})

test('the doctor requires environments:manage', async () => {
  routes.capabilities = CAPABILITIES.filter((capability) => capability !== 'environments:manage')
  await rejection(routes.call('GET', DOCTOR), 403, 'PLATFORM_ACCESS_DENIED')
  routes.capabilities = CAPABILITIES
})
