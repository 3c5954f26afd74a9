/** Liveness of the process, and readiness of its identity database. */
import { Live, Ready } from '../health.ts'
import { publicOperation } from './operation.ts'

export const readLiveness = publicOperation({
  method: 'GET',
  path: '/health/live',
  name: 'readLiveness',
  summary: 'Reports whether the process runs.',
  rate: 'none',
  replies: { 200: Live },
})

export const readReadiness = publicOperation({
  method: 'GET',
  path: '/health/ready',
  name: 'readReadiness',
  summary: 'Reports whether the identity database answers.',
  rate: 'none',
  replies: { 200: Ready, 503: Ready },
})

export const healthOperations = { readLiveness, readReadiness }
