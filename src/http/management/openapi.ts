/** The OpenAPI document of both origins. */
import { OpenApiDocument } from '../../wire/openapi.ts'
import { JSON_MEDIA_TYPE, publicRoute, type Route } from './route.ts'

export interface OpenApiApp {
  /** Returns the OpenAPI document as JSON text, always the same string. */
  openApiDocument(): string
}

export const openApiRoutes: readonly Route<OpenApiApp>[] = [
  publicRoute({
    method: 'GET',
    path: '/v1/openapi.json',
    name: 'readOpenApiDocument',
    summary: 'Returns the OpenAPI document of both addresses.',
    replies: { 200: OpenApiDocument },
    cache: 'public, max-age=300',
    handle({ app }) {
      return { status: 200, text: app.openApiDocument(), contentType: JSON_MEDIA_TYPE }
    },
  }),
]
