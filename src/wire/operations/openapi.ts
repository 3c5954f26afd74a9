/** The OpenAPI document of both origins. */
import { OpenApiDocument } from '../openapi.ts'
import { publicOperation } from './operation.ts'

export const readOpenApiDocument = publicOperation({
  method: 'GET',
  path: '/v1/openapi.json',
  name: 'readOpenApiDocument',
  summary: 'Returns the OpenAPI document of both addresses.',
  replies: { 200: OpenApiDocument },
  cache: 'public, max-age=300',
})

export const openApiOperations = { readOpenApiDocument }
