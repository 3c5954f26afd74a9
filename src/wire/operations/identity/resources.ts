/** The Product Environments that the caller may link. */
import { RESOURCES_BYTES_MAX, Resources } from '../../identity/auth.ts'
import { operatorOperation } from '../operation.ts'

export const listResources = operatorOperation({
  method: 'GET',
  path: '/v1/auth/resources',
  name: 'listResources',
  summary: 'Lists the Product Environments that the caller may link.',
  replies: { 200: Resources },
  responseBytesMax: RESOURCES_BYTES_MAX,
})

export const resourceOperations = { listResources }
