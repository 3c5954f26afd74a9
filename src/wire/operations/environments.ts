/** Desired and observed state of the Environment, and its changes. */
import {
  ENVIRONMENT_BODY_BYTES_MAX,
  EnvironmentChanged,
  EnvironmentCreate,
  EnvironmentLifecycleChange,
  EnvironmentState,
  EnvironmentUpdate,
} from '../environment.ts'
import { lookUpOperation } from './idempotency-records.ts'
import { environmentOperation } from './operation.ts'

const MANAGE = {
  capability: 'environments:manage',
  operationId: 'required',
  errors: ['PRODUCT_CAS_CONFLICT', 'PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT'],
} as const

export const readEnvironment = environmentOperation({
  method: 'GET',
  path: '',
  name: 'readEnvironment',
  summary: 'Returns the desired and observed state of the Environment.',
  capability: 'environments:read',
  replies: { 200: EnvironmentState },
})

export const createEnvironment = environmentOperation({
  method: 'POST',
  path: '',
  name: 'createEnvironment',
  summary: 'Creates the Environment with its first configuration.',
  ...MANAGE,
  replies: { 200: EnvironmentChanged, 201: EnvironmentChanged },
  body: { schema: EnvironmentCreate, bytesMax: ENVIRONMENT_BODY_BYTES_MAX },
})

export const updateEnvironment = environmentOperation({
  method: 'PUT',
  path: '',
  name: 'updateEnvironment',
  summary: 'Replaces the configuration of the Environment.',
  ...MANAGE,
  replies: { 200: EnvironmentChanged },
  body: { schema: EnvironmentUpdate, bytesMax: ENVIRONMENT_BODY_BYTES_MAX },
})

export const archiveEnvironment = environmentOperation({
  method: 'POST',
  path: '/archive',
  name: 'archiveEnvironment',
  summary: 'Stops serving the Environment and keeps its data.',
  ...MANAGE,
  replies: { 200: EnvironmentChanged },
  body: { schema: EnvironmentLifecycleChange },
})

export const restoreEnvironment = environmentOperation({
  method: 'POST',
  path: '/restore',
  name: 'restoreEnvironment',
  summary: 'Serves an archived Environment again.',
  ...MANAGE,
  replies: { 200: EnvironmentChanged },
  body: { schema: EnvironmentLifecycleChange },
})

export const readEnvironmentOperation = lookUpOperation(
  '/environment-operations',
  'readEnvironmentOperation',
  'environments:read',
)

export const environmentOperations = {
  readEnvironment,
  createEnvironment,
  updateEnvironment,
  archiveEnvironment,
  restoreEnvironment,
  readEnvironmentOperation,
}
