/** Health of the components of the served Environment, without the causes of failures. */
import { Health } from '../health.ts'
import { environmentOperation } from './operation.ts'

export const readHealth = environmentOperation({
  method: 'GET',
  path: '/instances/healthz',
  name: 'readHealth',
  summary: 'Returns the health of each component of the Environment, and the worst of them.',
  capability: 'environments:read',
  replies: { 200: Health },
})

export const instanceOperations = { readHealth }
