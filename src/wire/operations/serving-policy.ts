/** The serving policy of environment:default, and the compatibility of its Releases. */
import {
  SchemaCompatibility,
  ServingPolicy,
  ServingPolicyChanged,
  ServingPolicySet,
} from '../serving-policy.ts'
import { lookUpOperation } from './idempotency-records.ts'
import { environmentOperation } from './operation.ts'

export const readServingPolicy = environmentOperation({
  method: 'GET',
  path: '/serving-policy',
  name: 'readServingPolicy',
  summary: 'Returns the desired and the observed serving policy of environment:default.',
  capability: 'releases:read',
  replies: { 200: ServingPolicy },
})

export const setServingPolicy = environmentOperation({
  method: 'PUT',
  path: '/serving-policy',
  name: 'setServingPolicy',
  summary: 'Replaces the serving policy of environment:default.',
  capability: 'channels:promote',
  operationId: 'required',
  body: { schema: ServingPolicySet },
  replies: { 200: ServingPolicyChanged },
  errors: [
    'PRODUCT_CAS_CONFLICT',
    'PRODUCT_INCOMPATIBLE',
    'PRODUCT_INVALID',
    'PRODUCT_RELEASE_RETIRED',
    'PRODUCT_STATE_CONFLICT',
  ],
})

export const readServingPolicyOperation = lookUpOperation(
  '/serving-policy-operations',
  'readServingPolicyOperation',
  'releases:read',
)

export const readSchemaCompatibility = environmentOperation({
  method: 'GET',
  path: '/schemas/compatibility',
  name: 'readSchemaCompatibility',
  summary: 'Reports whether the Releases of the serving policy read what the others write.',
  capability: 'releases:read',
  replies: { 200: SchemaCompatibility },
  errors: ['PRODUCT_RELEASE_RETIRED'],
})

export const servingPolicyOperations = {
  readServingPolicy,
  setServingPolicy,
  readServingPolicyOperation,
  readSchemaCompatibility,
}
