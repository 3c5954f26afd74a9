/** Health of the components of the served Environment, and the checks of the doctor. */
import { DoctorReport } from '../doctor/report.ts'
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

/** Time that a client waits for a run; the server bounds what a run reads. */
const DOCTOR_MILLIS = 120_000

export const runDoctor = environmentOperation({
  method: 'GET',
  path: '/instances/doctor',
  name: 'runDoctor',
  summary: 'Checks the server, its machine and its stores, and says what repairs a failure.',
  capability: 'environments:manage',
  replies: { 200: DoctorReport },
  errors: ['PRODUCT_UNAVAILABLE'],
  deadlineMs: DOCTOR_MILLIS,
})

export const instanceOperations = { readHealth, runDoctor }
